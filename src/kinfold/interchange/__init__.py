"""Interchange: the files of other tools, read for what they say in plain text."""

from kinfold.interchange.conversion import Conversion, convert
from kinfold.interchange.deid import read_deid
from kinfold.interchange.project import Attribute, Project
from kinfold.interchange.recognition import converted

__all__ = ["Attribute", "Conversion", "Project", "convert", "converted", "read_deid"]
