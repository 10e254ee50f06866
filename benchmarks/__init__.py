"""Side-by-side measurements: `python -m benchmarks [NAME ...]`, `make bench` or `make bench-full`. Every speed is a ratio."""
