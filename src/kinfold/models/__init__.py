"""Privacy models: predicates on a tally, the same object to steer a search and to judge a release."""

from kinfold.models.diversity import AlphaK, LDiversity, PSensitive
from kinfold.models.k_anonymity import KAnonymity
from kinfold.models.likeness import BetaLikeness, DeltaDisclosure
from kinfold.models.model import Finding, Mask, Model, Promise
from kinfold.models.t_closeness import TCloseness

__all__ = [
    "AlphaK",
    "BetaLikeness",
    "DeltaDisclosure",
    "Finding",
    "KAnonymity",
    "LDiversity",
    "Mask",
    "Model",
    "PSensitive",
    "Promise",
    "TCloseness",
]
