"""Side-by-side benchmarks: ours and the others', interleaved in one run."""
