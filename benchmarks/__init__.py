"""Side-by-side measurements: `python -m benchmarks [NAME ...]`, or `make bench`. Every speed is a ratio from one run."""
