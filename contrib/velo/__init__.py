"""Velo's commands in Python: a module or a package for each, and what they share."""
