"""One module for each experiment, or for those that share their plan."""
