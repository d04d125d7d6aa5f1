"""velo-info: what is installed, what works on this machine and why not, and what to put on the command line."""
