"""Questions: what else to measure than what every release is measured by.

measures            "standard" or "all"; as the policy says unless given. What "all" adds takes a fit or a search: the
                    propensity score, and the linkage attack by every record of a large table
columns             "quasi", or "all" that are in both tables: what the losses are measured over
weights             "k", a matrix, or a CSV file with one: the weights of the weighted disclosure risk
population          a table of the people the records were drawn from: the journalist's risk
sampling_weights    a column that says how many people a record stands for: the individual risk; as the policy says
                    unless given
threshold           the share of the records whose risk is above it
linkage_subsets     attack the most telling subsets of the quasi-identifiers as well
linkage_untouched   attack with the columns that were released untouched as well
task                "regression:income" or "classification:disease": fitted on the original and on the release
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, require_ordinary
from kinfold.measures.weights import WeightMatrix
from kinfold.request.policy import Report

SETS = ("standard", "all")
TASKS = ("regression", "classification")


@dataclass(frozen=True, eq=False)
class Questions:
    """What was asked for; the defaults ask for nothing more."""

    measures: str | None = None
    columns: str = "quasi"
    weights: Any = "k"
    population: Any = None
    sampling_weights: str | None = None
    threshold: Any = None  # a number, or nothing
    linkage_subsets: bool = False
    linkage_untouched: bool = False
    task: str | None = None

    def __post_init__(self) -> None:
        if self.measures not in (None, *SETS):
            raise PolicyError(f"measures '{self.measures}' are not known", fix="say standard or all")
        if self.columns not in ("quasi", "all"):
            raise PolicyError(f"columns '{self.columns}' are not known", fix="say quasi or all")
        number = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        if self.threshold is not None and not (number and 0 <= self.threshold <= 1):
            raise PolicyError("the threshold is no risk", fix="a risk is a number from 0 to 1")
        if self.population is not None and self.sampling_weights is not None:
            raise PolicyError("a population and sampling weights were given", fix="give the population: it is exact")
        if self.task is not None:
            self.named_task()

    @classmethod
    def taken(cls, keywords: Mapping[str, Any]) -> tuple[Questions, dict[str, Any]]:
        """Take the questions out of keywords and return them with what is left."""
        known = {field.name for field in fields(cls)}
        asked = {key: value for key, value in keywords.items() if key in known}
        return cls(**asked), {key: value for key, value in keywords.items() if key not in known}

    def completed(self, report: Report) -> Questions:
        """Return the questions, with what the policy says where nobody asked otherwise."""
        weights = self.sampling_weights or (report.sampling_weights if self.population is None else None)
        return replace(self, measures=self.measures or report.measures, sampling_weights=weights)

    @property
    def every(self) -> bool:
        """Whether all measures are computed, and not the standard ones alone."""
        return self.measures == "all"

    def named_task(self) -> tuple[str, str]:
        """Return the sort of the task and the column to explain.

        >>> Questions(task="regression:income").named_task()
        ('regression', 'income')
        """
        sort, _, target = str(self.task or "").partition(":")
        if sort not in TASKS or not target:
            raise PolicyError(
                f"the task '{self.task}' is not known", fix="write regression:COLUMN or classification:COLUMN"
            )
        return sort, target

    def weigh(self, k: int, records: int) -> WeightMatrix:
        """Return the weights of the weighted disclosure risk for so many released records."""
        if isinstance(self.weights, str) and self.weights == "k":
            return WeightMatrix.below(k, records)
        if isinstance(self.weights, str | Path):
            return WeightMatrix.of(_matrix(Path(self.weights)), records)
        return WeightMatrix.of(self.weights, records)


def _matrix(file: Path) -> NDArray[np.float64]:
    """Read a matrix from a CSV file without a header; rows may end early, what is not there is 0."""
    try:
        require_ordinary(file, PolicyError(f"weights '{file}' are no ordinary file", fix="name a CSV file"))
        lines = [line for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        rows = [[float(cell) for cell in line.split(",") if cell.strip()] for line in lines]
    except OSError as error:
        raise PolicyError(f"weights '{file}': {error.strerror}", fix="check the path") from None
    except PolicyError:
        raise
    except ValueError:
        raise PolicyError(
            f"weights '{file}' are not a matrix of numbers", fix="write one row a line, commas between, no header"
        ) from None
    matrix = np.zeros((len(rows), max((len(row) for row in rows), default=0)))
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = row
    return matrix
