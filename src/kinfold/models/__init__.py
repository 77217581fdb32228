"""Privacy models: predicates on a tally, the same object to steer a search and to judge a release."""

from kinfold.models.alpha import AlphaK
from kinfold.models.finding import Finding, Mask, Model, Promise
from kinfold.models.k_anonymity import KAnonymity
from kinfold.models.l_diversity import LDiversity
from kinfold.models.p_sensitive import PSensitive
from kinfold.models.t_closeness import TCloseness

__all__ = [
    "AlphaK",
    "Finding",
    "KAnonymity",
    "LDiversity",
    "Mask",
    "Model",
    "PSensitive",
    "Promise",
    "TCloseness",
]
