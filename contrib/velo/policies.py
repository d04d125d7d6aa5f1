"""The parameters that give a policy a mailbox of so many slots for each peer."""

# Liu & Panda: explicit credit messages below this number of credits are suppressed.
CREDIT_MESSAGE_THRESHOLD = 5


def parameters(policy, slots, ranks, credit_slots=None):
    """(name without btl_velo_, value) pairs. Policies that are not named here take slots_per_peer."""
    further = () if credit_slots is None else (("credit_slots", credit_slots),)
    if policy == "rnr":
        return (("preposted_buffers", slots),)
    if policy == "mvapich_static":
        return (("preposted_buffers", buffers_in(slots)),)
    if policy == "lazy":
        return (("lazy_slots", slots * (ranks - 1)), ("lazy_peers", ranks - 1), *further)
    return (("slots_per_peer", slots), *further)


def with_buffers(policy, buffers, ranks):
    """A peer may have so many packets under way: what Liu & Panda call pre-posted buffers."""
    if policy in ("rnr", "mvapich_static"):
        return (("preposted_buffers", buffers),)
    if policy == "mvapich_dynamic":
        return (("initial_buffers", buffers), ("preposted_buffers", max(100, buffers)), ("slots_per_peer", 256))
    if policy == "lazy":
        return (("lazy_slots", buffers * (ranks - 1)), ("lazy_peers", ranks - 1))
    # One credit slot, which is what the smallest mailbox of dynamic can have.
    return (("slots_per_peer", buffers + 1), ("credit_slots", 1))


def buffers_in(slots):
    """The most buffers that leave room for their credit messages in so many slots."""
    for buffers in range(slots - 1, 0, -1):
        if buffers + buffers // min(CREDIT_MESSAGE_THRESHOLD, buffers) <= slots:
            return buffers
    return 1


def mca(pairs):
    return tuple((f"btl_velo_{name}", str(value)) for name, value in pairs)
