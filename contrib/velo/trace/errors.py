"""What can be wrong with what is read."""

from ..command import Trouble


class TraceError(Trouble):
    """A file cannot be used; the text names it and says why."""
