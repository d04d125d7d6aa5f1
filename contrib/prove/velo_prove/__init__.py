"""What contrib/prove/velo-prove is made of."""
