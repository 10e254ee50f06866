"""Numbers at the ends of what floating point holds: too large or too small to be squared, or lost in rounding.

In: distances, squared or not, or the largest number of a table. Out: whether its squares can be worked with, the power of 2 to
divide by where they cannot (which is exact), and distances without what rounding left below 0.
"""

import numpy as np

# Largest squared values that are worked with as they are, and one over the smallest: squares of sums and differences of others
# would leave the range of the type, so they are rescaled.
SAFE_SQUARE = {np.dtype(np.float32): 1e25, np.dtype(np.float64): 1e100}
LARGEST_EXPONENT = 508  # of 2, by which values are rescaled at the most: θ must be a number, and goes with its square


def least_certain(z: np.ndarray) -> float:
    """The size below which squared distances, computed as ‖x‖² + ‖y‖² − 2x·y, may be rounding and nothing else.

    It is a third of the digits above the rounding of the largest one, since the products may be much larger than it.
    """
    return float(np.finfo(z.dtype).eps) ** (2.0 / 3.0) * float(z.max(initial=0.0))


def without_negatives(z: np.ndarray) -> np.ndarray:
    """Distances, squared or not, with 0 for what rounding left below 0. Raises for what is really negative."""
    least = float(z.min(initial=0.0))
    if least >= 0.0:
        return z
    if least < -least_certain(z):
        raise ValueError(
            f"Distances cannot be negative, nor their squares, but the smallest is {least:.6g}. Use np.maximum(X, 0) if that "
            "is rounding."
        )
    return np.maximum(z, 0.0)


def is_safe(largest: float, dtype) -> bool:
    """Whether numbers up to this can be added, subtracted and compared in their type without loss of range."""
    limit = SAFE_SQUARE[np.dtype(dtype)]
    return 1.0 / limit <= largest <= limit


def exponent_near(largest: float, name: str, most: int = LARGEST_EXPONENT) -> int:
    """The power of 2 near the largest value, by which all are divided: that is exact."""
    exponent = int(np.frexp(largest)[1])
    if abs(exponent) > most:
        raise ValueError(
            f"{name} holds values up to {largest:.3g}: squared distances are beyond what float64 holds. Rescale the features "
            "(StandardScaler), or remove values that stand for missing ones."
        )
    return exponent


def rescaled(X, exponent: int):
    """X in units of 2**exponent, in float64 unless it is X itself."""
    return X if exponent == 0 else (X.astype(np.float64) * 2.0**-exponent)
