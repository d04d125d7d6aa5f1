"""Experiments of the papers on flow control, run on this machine."""
