"""What to do with a graph: propagate labels, embed it, say how good it is. Nothing here needs the learner.

A function is imported when it is first used: those with compiled loops take more than a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smoothgraph.uses.embedding import Embedding, spectral_embedding
    from smoothgraph.uses.paths import Diameter, diameter, hops
    from smoothgraph.uses.propagation import Propagation, label_propagation
    from smoothgraph.uses.quality import relative_l1, weight_between_classes, wrong_weight

__all__ = [
    "Diameter",
    "Embedding",
    "Propagation",
    "diameter",
    "hops",
    "label_propagation",
    "relative_l1",
    "spectral_embedding",
    "weight_between_classes",
    "wrong_weight",
]

_HOME = {
    "Diameter": "paths",
    "Embedding": "embedding",
    "Propagation": "propagation",
    "diameter": "paths",
    "hops": "paths",
    "label_propagation": "propagation",
    "relative_l1": "quality",
    "spectral_embedding": "embedding",
    "weight_between_classes": "quality",
    "wrong_weight": "quality",
}


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'smoothgraph.uses' has no attribute {name!r}; it has {', '.join(__all__)}.")
    globals()[name] = value = getattr(import_module(f"smoothgraph.uses.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
