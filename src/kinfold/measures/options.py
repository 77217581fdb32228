"""Options of `measure`: which measures to compute beyond those of every release.

measures            "standard" or "all"; by default as in the policy. "all" adds what takes a fit or a search: the
                    propensity score, and the linkage attack on every record of a large table
columns             "quasi" or "all": the columns over which losses are measured
weights             "k", a matrix, or a CSV file with one: the weights of the weighted disclosure risk
population          a table of the people that the records were sampled from: the journalist's risk
sampling_weights    a column with the number of people that a record stands for: the individual risk; by default as in
                    the policy
threshold           adds the share of records with a higher risk
linkage_subsets     also attack the subsets of quasi-identifiers that distinguish the most records
linkage_untouched   also attack with the columns that were released unchanged
task                "regression:income", "classification:disease" or "charge ~ age + sex": fitted to the original and to
                    the release; by default as in the policy
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, check_types, require_regular_file
from kinfold.measures.formulas.global_risk import WeightMatrix
from kinfold.policy.model import Policy

MEASURE_SETS = ("standard", "all")
TASK_KINDS = ("regression", "classification")
FORMULA = "formula"  # a task with its columns: "charge ~ age + sex"


@dataclass(frozen=True, eq=False)
class MeasureOptions:
    """The options of `measure`; see the module."""

    measures: str | None = None
    columns: str = "quasi"
    weights: Any = "k"
    population: Any = None
    sampling_weights: str | None = None
    threshold: Any = None  # a number from 0 to 1
    linkage_subsets: bool = False
    linkage_untouched: bool = False
    task: str | None = None

    def __post_init__(self) -> None:
        check_types(vars(self), {field.name: str(field.type) for field in fields(self)})
        if self.measures not in (None, *MEASURE_SETS):
            raise PolicyError(f"measures '{self.measures}' is not known", fix="use standard or all")
        if self.columns not in ("quasi", "all"):
            raise PolicyError(f"columns '{self.columns}' is not known", fix="use quasi or all")
        number = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        if self.threshold is not None and not (number and 0 <= self.threshold <= 1):
            raise PolicyError("the threshold is not a number from 0 to 1", fix="give a risk, such as 0.1")
        if self.population is not None and self.sampling_weights is not None:
            what = "a population and sampling weights were given"
            raise PolicyError(what, fix="give only the population, which is exact")
        if self.task is not None:
            self.parse_task()

    @classmethod
    def split_keywords(cls, keywords: Mapping[str, Any]) -> tuple[MeasureOptions, dict[str, Any]]:
        """Return the options among some keywords, and the other keywords."""
        known = {field.name for field in fields(cls)}
        options = {key: value for key, value in keywords.items() if key in known}
        return cls(**options), {key: value for key, value in keywords.items() if key not in known}

    def complete(self, policy: Policy) -> MeasureOptions:
        """Return the options with the defaults of the policy."""
        weights = self.sampling_weights or (policy.sampling_weights if self.population is None else None)
        report = policy.report
        return replace(
            self, measures=self.measures or report.measures, sampling_weights=weights, task=self.task or report.task
        )

    @property
    def all_measures(self) -> bool:
        """Whether all measures are computed, not only the standard ones."""
        return self.measures == "all"

    def parse_task(self) -> tuple[str, str]:
        """Return the kind of the task and its target column, or the formula.

        >>> MeasureOptions(task="regression:income").parse_task()
        ('regression', 'income')
        """
        if "~" in str(self.task or ""):
            return FORMULA, str(self.task)
        kind, _, target = str(self.task or "").partition(":")
        if kind not in TASK_KINDS or not target:
            what = f"the task '{self.task}' is not known"
            raise PolicyError(what, fix="write COLUMN ~ COLUMN + COLUMN, regression:COLUMN or classification:COLUMN")
        return kind, target

    def build_weights(self, k: int, records: int) -> WeightMatrix:
        """Return the weights of the weighted disclosure risk for a number of released records."""
        if isinstance(self.weights, str) and self.weights == "k":
            return WeightMatrix.equal_below(k, records)
        if isinstance(self.weights, str | Path):
            return WeightMatrix.from_matrix(_read_matrix(Path(self.weights)), records)
        return WeightMatrix.from_matrix(self.weights, records)


def _read_matrix(file: Path) -> NDArray[np.float64]:
    """Read a matrix from a CSV file without a header; rows may end early, missing cells are 0."""
    try:
        require_regular_file(file, PolicyError(f"weights '{file}' are not a regular file", fix="name a CSV file"))
        lines = [line for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        rows = [[float(cell) for cell in line.split(",") if cell.strip()] for line in lines]
    except OSError as error:
        raise PolicyError(f"weights '{file}': {error.strerror}", fix="check the path") from None
    except PolicyError:
        raise
    except ValueError:
        what = f"weights '{file}' are not a matrix of numbers"
        raise PolicyError(what, fix="write one row in each line, separated by commas, without a header") from None
    matrix = np.zeros((len(rows), max((len(row) for row in rows), default=0)))
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = row
    return matrix
