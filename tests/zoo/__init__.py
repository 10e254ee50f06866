"""The zoo: tables as they come, fitted untuned, each graph judged by something that shares no code with the learner.

`make zoo` runs all of it and writes docs/zoo.md; tests/test_zoo.py runs a small part. A table whose package is not installed is
skipped with the reason.
"""
