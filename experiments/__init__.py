"""The figures and tables of the paper, one module each: `python -m experiments [NAME ...] [--small | --full]`.

A module has SIZES (parameters of a small, a medium and a full run), `run(**parameters)` → numbers, `draw(numbers)` → figure and
`claims(numbers)` → what the paper says, and whether it was seen; ALWAYS are the beginnings of claims that hold at any size.
"""
