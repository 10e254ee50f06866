"""What to do with a graph: propagate labels, embed it, say how good it is. Nothing here needs the learner."""

from smoothgraph.uses.embedding import Embedding, spectral_embedding
from smoothgraph.uses.propagation import Propagation, label_propagation
from smoothgraph.uses.quality import Diameter, diameter, hops, relative_l1, weight_between_classes, wrong_weight

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
