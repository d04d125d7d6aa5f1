"""velo-compare: IMB benchmarks under Velo's flow-control policies, side by side."""
