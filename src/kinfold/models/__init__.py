"""Privacy models: predicates on a tally, the same object to steer a search and to judge a release."""

from kinfold.models.finding import Finding, Model
from kinfold.models.k_anonymity import KAnonymity

__all__ = ["Finding", "KAnonymity", "Model"]
