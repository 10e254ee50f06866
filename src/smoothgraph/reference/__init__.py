"""The models as they are defined: objective, dual and gap in plain float64 NumPy. They judge what the solvers find, and are
never used to find it."""
