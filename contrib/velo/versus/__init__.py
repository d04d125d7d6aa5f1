"""velo-measure transports: Velo and the other ways to run MPI inside a node, side by side."""
