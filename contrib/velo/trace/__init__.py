"""velo-trace: converts and draws traces of Velo's flow control."""
