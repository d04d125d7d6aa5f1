"""velo-measure policies: IMB benchmarks under Velo's flow-control policies, side by side."""
