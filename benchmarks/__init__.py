"""Side-by-side measurements: `python -m benchmarks [NAME ...]`, or `make bench` and `make bench-full`. Every speed is a ratio from one run."""
