"""Privacy models: predicates on a tally, the same object to steer a search and to judge a release."""

from kinfold.models.average_risk import AverageRisk, RiskShare
from kinfold.models.diversity import AlphaK, LDiversity, PSensitive
from kinfold.models.k_anonymity import KAnonymity
from kinfold.models.likeness import BetaLikeness, DeltaDisclosure
from kinfold.models.model import Finding, Mask, Model, Promise, TableModel, to_class_models
from kinfold.models.t_closeness import TCloseness

__all__ = [
    "AlphaK",
    "AverageRisk",
    "BetaLikeness",
    "DeltaDisclosure",
    "Finding",
    "KAnonymity",
    "LDiversity",
    "Mask",
    "Model",
    "PSensitive",
    "Promise",
    "RiskShare",
    "TCloseness",
    "TableModel",
    "to_class_models",
]
