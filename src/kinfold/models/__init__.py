"""Privacy models: predicates on a tally, the same object to steer a search and to judge a release."""

from kinfold.models.average_risk import AverageRisk, RiskShare
from kinfold.models.combinations import CombinationAnonymity, CombinationConfidence
from kinfold.models.diversity import AlphaK, LDiversity, PSensitive
from kinfold.models.k_anonymity import KAnonymity
from kinfold.models.likeness import BetaLikeness, DeltaDisclosure
from kinfold.models.model import Finding, Mask, Model, Promise, TableModel, to_class_models
from kinfold.models.population import DeltaPresence, EstimatedKMap, KMap
from kinfold.models.t_closeness import TCloseness

__all__ = [
    "AlphaK", "AverageRisk", "BetaLikeness", "CombinationAnonymity", "CombinationConfidence", "DeltaDisclosure",
    "DeltaPresence", "EstimatedKMap", "Finding", "KAnonymity", "KMap", "LDiversity", "Mask", "Model", "PSensitive",
    "Promise", "RiskShare", "TCloseness", "TableModel", "to_class_models",
]  # fmt: skip
