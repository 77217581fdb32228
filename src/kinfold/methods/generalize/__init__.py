"""Generalizers: a tally and hierarchies in, the level of every cell and the rows to suppress out."""

from kinfold.methods.generalize.datafly import Datafly, FrequencyList, Weights, datafly
from kinfold.methods.generalize.domain import Domain, View
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.lattice import Lattice, lattice
from kinfold.methods.generalize.loss import generalizations, is_below
from kinfold.methods.generalize.mingen import mingen, preferred
from kinfold.methods.generalize.mingen_cell import CellLevel, mingen_cell, released_by
from kinfold.methods.generalize.mu_argus import MuArgus, Ranks, mu_argus
from kinfold.methods.generalize.nodes import Node, Nodes

__all__ = [
    "CellLevel",
    "Datafly",
    "Domain",
    "FrequencyList",
    "Generalization",
    "Lattice",
    "MuArgus",
    "Node",
    "Nodes",
    "Ranks",
    "View",
    "Weights",
    "datafly",
    "generalizations",
    "is_below",
    "lattice",
    "mingen",
    "mingen_cell",
    "mu_argus",
    "preferred",
    "released_by",
]
