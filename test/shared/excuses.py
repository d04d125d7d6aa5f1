"""What went wrong and was excused, because it is shown that Velo had no part in it. Told at the end of the session.

Nothing is tried again but spawns that Open MPI has lost, each of which is told here: a failure that does not come a
second time is a failure.
"""

_reasons = []


def add(reason):
    """`reason`: what went wrong, and what shows that no code of Velo was involved."""
    _reasons.append(reason)


def all_of_them():
    return tuple(_reasons)
