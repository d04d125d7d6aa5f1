"""What can be wrong with what is read."""


class TraceError(Exception):
    """A file cannot be used; the text names it and says why."""
