"""How far apart the processors of two ranks were, by what the measuring program saw before and after a block."""

SIBLING, SHARED, FAR = NAMES = ("sibling threads", "shared cache", "far")
UNKNOWN = ""  # more than two ranks, or on two nodes
CHANGED = "changed"  # during the block
# A computing thread takes 1.8 to 2 times as long while another one computes on its core, and equally long beside another core, up to 1.3
# times where other programs come in between.
SLOWDOWN = 1.5
# Microseconds of a cache line one way: with one L3 .027 (AMD EPYC, family 25 model 17) to .120 (Intel Xeon, family 6 model 207), without .150 to .225.
# The time alone does not tell threads of a core, .026 to .032 on Zen 3.
FAR_USEC = 0.125


def of_block(ends):
    """Of (microseconds of the line, slowdown) before and after a block; None: there are none."""
    if ends is None:
        return UNKNOWN
    before, after = (SIBLING if slowdown >= SLOWDOWN else FAR if usec >= FAR_USEC else SHARED for usec, slowdown in ends)
    return before if before == after else CHANGED


def order(distance):
    return (UNKNOWN, *NAMES, CHANGED).index(distance)
