"""Allowed edges and a first θ → the certified optimum: solve, search θ for the wanted degree, certify, grow, connect."""
