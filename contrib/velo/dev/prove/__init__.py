"""What contrib/dev/velo-prove is made of."""
