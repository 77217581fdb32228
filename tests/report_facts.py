"""Facts for report tests: a hospital of 1,000 made-up patients, grouped in fives by a rough sort."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from kinfold.models import Finding
from kinfold.release.report.facts import Bins, ColumnFacts, Facts, Shares

EDUCATION = ("primary", "secondary", "bachelor", "master", "doctorate")
DISEASES = ("hypertension", "diabetes", "asthma", "influenza", "fracture", "depression", "pneumonia", "migraine")


def bins(values: np.ndarray, edges: np.ndarray, missing: int = 0) -> Bins:
    return Bins(tuple(edges.tolist()), tuple(np.histogram(values, edges)[0].tolist()), missing)


def date_bins(days: np.ndarray, edges: np.ndarray) -> Bins:
    first = date(2023, 1, 1)
    counts = tuple(np.histogram(days, edges)[0].tolist())
    return Bins(tuple((first + timedelta(int(day))).isoformat() for day in edges), counts, dates=True)


def shares(values: Sequence[str], order: Sequence[str] = (), most: int = 8) -> Shares:
    ranked = Counter(values).most_common()
    shown = [(label, Counter(values)[label]) for label in order] if order else ranked[:most]
    rest = [] if order else ranked[most:]
    labels, counts = zip(*shown, strict=True)
    return Shares(tuple(labels), tuple(counts), sum(n for _, n in rest), len(rest))


def averaged(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    sums = np.bincount(labels, values) / np.bincount(labels)
    return sums[labels]


def figures(mean: object, deviation: float, low: object, middle: object, high: object) -> dict[str, object]:
    """Return the statistics of a column as `Measures.statistics` has them."""
    return {"mean": mean, "variance": deviation**2, "quantiles": {"0.05": low, "0.5": middle, "0.95": high}}


def correlations(
    names: Sequence[str], before: Sequence[float | None], after: Sequence[float | None]
) -> dict[str, object]:
    """Return matrices of correlations from their values above the diagonal."""
    matrices = {}
    for side, values in (("before", before), ("after", after)):
        matrix = np.eye(len(names), dtype=object)
        matrix[np.triu_indices(len(names), 1)] = values
        matrices[side] = matrix.tolist()
    return {"columns": list(names), **matrices}


def hospital() -> Facts:
    """Return the facts of an internal page."""
    random = np.random.default_rng(7)
    n, k = 1000, 5
    age = np.clip(random.gamma(9, 6, n), 0, 101).round()
    income = np.exp(random.normal(10.3, 0.5, n)).round(-2)
    admitted = random.integers(0, 730, n).astype(float)
    charge = np.exp(random.normal(8, 1, n)).round()
    labels = np.empty(n, np.int64)
    labels[np.lexsort((admitted // 60, income // 8000, age // 8))] = np.arange(n) // k
    education = [EDUCATION[i] for i in np.clip((income / 15000).astype(int), 0, 4)]
    zips = [f"021{i:02d}" for i in random.geometric(0.09, n)]
    marital = random.choice(
        ["married", "never married", "divorced", "widowed", "separated"], n, p=[0.48, 0.3, 0.14, 0.06, 0.02]
    )
    sex = random.choice(["female", "male"], n, p=[0.54, 0.46])
    coarse = [EDUCATION[min(EDUCATION.index(value), 3)] for value in education]
    ages, incomes, days = np.arange(0, 106, 5), np.arange(0, 160_001, 8_000), np.arange(0, 731, 30)
    quasi = "quasi-identifier"
    columns = (
        ColumnFacts("name", "identifier", "nominal", True, "Removed."),
        ColumnFacts("age", quasi, "continuous", True, "Replaced by the mean of its class, rounded to whole numbers.",
                    bins(averaged(age, labels).round(), ages), bins(age, ages)),
        ColumnFacts("sex", quasi, "nominal", False, "Replaced by the most frequent value of its class.",
                    shares(["female"] * 571 + ["male"] * 429), shares(sex.tolist())),
        ColumnFacts("zip", quasi, "nominal", False, "Generalized to the lowest common ancestor of its class.",
                    shares([z[:4] + "*" for z in zips]), shares(zips)),
        ColumnFacts("education", quasi, "ordinal", False, "Replaced by the median of its class.",
                    shares(coarse, EDUCATION), shares(education, EDUCATION)),
        ColumnFacts("marital status", quasi, "nominal", True, "Replaced by the most frequent value of its class.",
                    shares(["married"] * 610 + ["never married"] * 310 + ["divorced"] * 80), shares(marital.tolist())),
        ColumnFacts("income", quasi, "continuous", True, "Replaced by the mean of its class, rounded to whole numbers.",
                    bins(averaged(income, labels), incomes, 14), bins(income, incomes, 14)),
        ColumnFacts("admission date", quasi, "date", True, "Replaced by the mean of its class, rounded to whole days.",
                    date_bins(averaged(admitted, labels), days), date_bins(admitted, days)),
        ColumnFacts("disease", "confidential", "nominal", True, "Released as it is.",
                    *(shares(random.choice(DISEASES, n, p=[.25, .2, .15, .12, .1, .08, .06, .04]).tolist()),) * 2),
        ColumnFacts("charge", "other", "continuous", True, "Released as it is.",
                    *(bins(charge, np.arange(0, 40_001, 2000)),) * 2, singles_out=0.873),
    )  # fmt: skip
    return Facts(
        title="patients.csv",
        findings=(
            Finding("5-anonymity", "k", None, 5, 5, True),
            Finding("0.2-closeness of disease", "t", "disease", 0.2, 0.1834, True),
            Finding("distinct 2-diversity of disease", "l", "disease", 2, 3, True),
        ),
        records=1000,
        released=1000,
        suppressed=0,
        classes=191,
        class_sizes=((5, 160), (6, 20), (7, 8), (8, 3)),
        method="mdav",
        method_reason="its groups have nearly equal sizes, and 1,000 records are few enough for the exact method.",
        columns=columns,
        version="0.1.0",
        measures=MEASURES,
        notes=("14 missing values of income were replaced by its mean.", "Rows are sorted by their released values."),
        warnings=(
            "The column 'charge' is not named in the policy and was released because --others release was given.",
        ),
        cautions=("'income': one record makes more than 75% of the total in 3 classes",),
        numbers={
            "age": {
                "before": figures(53.914, 18.02, 27.0, 52.0, 86.0),
                "after": figures(53.9, 17.41, 28.6, 51.8, 84.2),
            },
            "zip code": {"before": figures(2138.0, 4.5, 2131.0, 2138.0, 2148.0), "after": None},
            "admission date": {
                "before": figures("2023-12-31", 210.3, "2023-02-06", "2024-01-01", "2024-11-24"),
                "after": figures("2023-12-31", 201.7, "2023-02-20", "2024-01-02", "2024-11-09"),
            },
        },
        correlations=correlations(["age", "income", "admission date"], [0.0712, -0.01, None], [-0.0231, -0.012, 0.1]),
    )


MEASURES = {
    "risk": {
        "dr_min": 0.0, "dr_max": 0.2, "dr_weighted": 0.0312, "unique_from_larger": 0, "prosecutor_max": 0.2,
        "prosecutor_mean": 0.198, "linkage": 0.0731, "interval": 0.4212, "inference": {"disease": 0.4213},
    },
    "loss": {
        "sse": 812.4418, "sst": 2997.0, "sse_ratio": 0.271085, "normalized_sse": 0.01203, "il1": 0.311, "il2": 0.0,
        "il3": 0.2814, "il4": None, "il5": 0.118, "il": None, "pil": {"mean": 12.1, "variance": 41.2}, "prec": None,
        "granularity": 0.08813, "discernibility": 5042, "average_class_size": 1.015,
    },
}  # fmt: skip


def many(columns: int) -> Facts:
    """Return facts of a table with so many columns."""
    facts = hospital()
    source = facts.columns[1:]
    made = tuple(replace(source[i % len(source)], name=f"measurement {i}") for i in range(columns))
    return replace(facts, columns=made)


HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a\"b'c&d",
    "</svg></style><script>",
    "{{ 7 * 7 }}",
    "رقم المريض",
    "‮reversed",
    "a\x00b\x1b\x85c\ud800\uffff",
    "",
    "   ",
    "x" * 300,
    "既婚・配偶者あり・子供三人・東京都",
)


def hostile() -> Facts:
    """Return facts in which every text tries to break out of the page."""
    facts = hospital()
    counts = tuple(range(len(HOSTILE), 0, -1))
    columns = tuple(
        ColumnFacts(text, role, text, True, text, Shares(HOSTILE, counts), Shares(HOSTILE[::-1], counts), 0.1)
        for text, role in zip(HOSTILE, ("quasi-identifier", "confidential", "other", "no such role") * 3, strict=True)
    )
    return replace(
        facts,
        title=HOSTILE[0],
        findings=tuple(Finding(text, model, text, 2, 1, False, 3, 1) for text in HOSTILE for model in "ktlx"),
        columns=columns,
        method=HOSTILE[1],
        method_reason=HOSTILE[2],
        version=HOSTILE[3],
        measures={text: {text: 1.0, "parts": {text: 2.0}, "none": None} for text in HOSTILE} | {HOSTILE[0]: HOSTILE[1]},
        notes=HOSTILE,
        warnings=HOSTILE,
        cautions=HOSTILE,
        numbers={
            text: {"before": figures(-1e300, 1e-300, -1234567.891, 0, 1e15), "after": figures(1e300, 0.0, 0, -1, 1)}
            for text in HOSTILE
        },
        correlations=correlations(HOSTILE, [0.1] * 66, [-0.1] * 66),
    )
