"""Torture: random problems, files, arrays, kills and interruptions, judged by something that shares no code with smoothgraph.

`make torture` runs every kind for some minutes and adds what it saw to docs/reliability.json and docs/reliability.md;
tests/test_torture.py runs a few cases of each kind, and every case that once failed (`cases/`).
"""
