"""The models: objective, dual and gap in plain NumPy. They judge what the solvers find; they are no part of finding it."""
