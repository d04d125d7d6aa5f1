"""Commands that are not installed: what only developers run."""
