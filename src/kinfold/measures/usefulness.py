"""What an analyst finds in both tables: the score of a task, or the estimates of a formula.

Task: a regression or a classification fitted to both tables and scored on the original records. Features are all other
columns: numbers (a range by its middle), and shares of the most frequent categories (a label gives equal shares to the
categories that it covers). A column whose released cells are mostly labels of several categories is constant in the fit
to the release. Records need not be paired.

Formula, such as "charge ~ age + sex": these estimates with the same features.

    coefficient    of a linear regression; of a category against the most frequent one
    mean           of the target in each category
    correlation    of the target with each number

Each estimate of the original has its confidence interval (95 %, by the normal distribution; of a correlation by
Fisher's transformation). An estimate of the release inside it is one that another sample of people could have given.
Records with a missing number are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from kinfold.errors import PolicyError
from kinfold.measures.coverage import find_places, find_spans, get_released_numbers
from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable
from kinfold.measures.formulas.utility import accuracy_loss, fit_coefficients, regression_loss
from kinfold.measures.pairing import Pair, PairedColumn
from kinfold.policy.encoding import NumericAttribute
from kinfold.policy.validation import suggest_name

MAX_FEATURE_CATEGORIES = 24  # of a column: the time of a fit grows with the square of their number
WIDTH = 1.96  # standard errors on each side of a confidence interval of 95 %


def fit_task(pair: Pair, kind: str, target: str) -> dict[str, Any]:
    """Return the scores on the original records of the fits to both tables, and their difference."""
    names = [column.name for column in pair.columns]
    if target not in names:
        what = f"no column '{target}' for the task{suggest_name(target, names)}"
        raise PolicyError(what, fix="name a column of both tables")
    aim = pair.columns[names.index(target)]
    most = len(pair.kept) // 2  # names and other columns of mostly different values explain nothing
    others = [c for c in pair.columns if c is not aim]
    others = [c for c in others if isinstance(c.attribute, NumericAttribute) or c.attribute.null_code <= most]
    if not others:
        raise NotApplicable("there is no other column to explain the target by")
    features = [
        number_features(column) if isinstance(column.attribute, NumericAttribute) else category_features(column)
        for column in others
    ]
    sides = [np.hstack(parts) for parts in zip(*features, strict=True)]
    before, after = sides[0], sides[1][pair.kept]
    numeric, regression = isinstance(aim.attribute, NumericAttribute), kind == "regression"
    if numeric != regression:
        fit = "regression" if numeric else "classification"
        what = f"'{aim.name}' is {aim.attribute.bound.kind}, and cannot be the target of a {kind}"
        raise PolicyError(what, fix=f"set the task to {fit}:{aim.name}")
    if regression:
        x, y = number_features(aim)
        scores = regression_loss(np.hstack([before, x]), np.hstack([after, y[aim.kept]]), target=before.shape[1])
    else:
        truth, answers = aim.before, aim.after[aim.kept]
        single = answers <= int(truth.max())  # not a label of several categories
        scores = accuracy_loss(before, after[single], truth, answers[single])
    return {"task": f"{kind}:{target}", "original": scores.original, "released": scores.released, "loss": scores.loss}


def number_features(column: PairedColumn) -> tuple[Floats, Floats]:
    """Return the numbers of a column, before and after; a range as its middle."""
    assert isinstance(column.attribute, NumericAttribute)  # noqa: S101  the caller checks
    return column.attribute.numbers[:, None], get_released_numbers(column)[:, None]


def find_frequent_categories(column: PairedColumn) -> Ints:
    """Return the places of the most frequent categories of the original, in their order."""
    values = find_spans(column).values
    counts = np.bincount(find_places(column), minlength=values + 1)
    return np.sort(np.argsort(-counts[:values], kind="stable")[:MAX_FEATURE_CATEGORIES])


def category_features(column: PairedColumn) -> tuple[Floats, Floats]:
    """Return the share of each frequent category in the value of each record, before and after."""
    assert column.place is not None  # noqa: S101  codes are released as labels
    spans, places, frequent = find_spans(column), find_places(column), find_frequent_categories(column)
    width = (spans.stop - spans.start)[:, None]
    inside = (frequent >= spans.start[:, None]) & (frequent < spans.stop[:, None])
    shares = np.vstack([inside / width, np.zeros((2, len(frequent)))])  # after the labels: left out, null
    before = (places[:, None] == frequent).astype(np.float64)
    exact = np.append(spans.stop - spans.start == 1, [False, True])[column.place[column.kept]]
    if 2 * exact.sum() < len(exact):
        return before, np.broadcast_to(before.mean(axis=0), before.shape)
    return before, shares[column.place]


class Feature(NamedTuple):
    """One column of the regression: its name, its category if it has one, and its values before and after."""

    column: str
    category: str | None
    before: Floats
    after: Floats


def fit_formula(pair: Pair, formula: str) -> dict[str, Any]:
    """Return the estimates of a formula in both tables, and R² on the original records as for other tasks."""
    target, columns = _find_columns(pair, formula)
    y, z = (side[:, 0] for side in number_features(target))
    features = [feature for column in columns for feature in _list_features(column)]
    complete = [~np.isnan(np.column_stack([y, *(f.before for f in features)])).any(axis=1)]
    complete.append(~np.isnan(np.column_stack([z, *(f.after for f in features)])).any(axis=1) & pair.kept)
    if min(rows.sum() for rows in complete) < 2:
        raise NotApplicable("there are too few complete records")
    sides = Sides(
        [f._replace(before=f.before[complete[0]], after=f.after[complete[1]]) for f in features],
        y[complete[0]],
        z[complete[1]],
    )
    used = _drop_base_categories(sides.features)
    before = np.column_stack([*(f.before for f in used), sides.before])
    after = np.column_stack([*(f.after for f in used), sides.after])
    scores = regression_loss(before, after, target=len(used))
    estimates = [*_fit(sides, used), *_compare_means(sides), *_correlate(sides)]
    inside = sum(estimate["inside"] for estimate in estimates) / len(estimates)
    score = {"original": scores.original, "released": scores.released, "loss": scores.loss, "inside": inside}
    return {"task": formula, **score, "estimates": estimates}


class Sides(NamedTuple):
    """The features and the target of the complete records, before and after."""

    features: list[Feature]
    before: Floats
    after: Floats


def _find_columns(pair: Pair, formula: str) -> tuple[PairedColumn, list[PairedColumn]]:
    left, _, right = formula.partition("~")
    names = [left.strip(), *(part.strip() for part in right.split("+"))]
    known = {column.name: column for column in pair.columns}
    for name in names:
        if name not in known:
            what = f"no column '{name}' for the task{suggest_name(name, [*known])}"
            raise PolicyError(what, fix="name released columns: COLUMN ~ COLUMN + COLUMN")
    target = known[names[0]]
    if not isinstance(target.attribute, NumericAttribute):
        raise PolicyError(f"'{target.name}' is {target.attribute.bound.kind}", fix="a formula explains numbers")
    return target, [known[name] for name in dict.fromkeys(names[1:])]


def _list_features(column: PairedColumn) -> Iterator[Feature]:
    if isinstance(column.attribute, NumericAttribute):
        before, after = number_features(column)
        yield Feature(column.name, None, before[:, 0], after[:, 0])
        return
    before, after = category_features(column)
    hierarchy = column.attribute.hierarchy
    labels = column.attribute.texts if hierarchy is None else hierarchy.values
    for i, place in enumerate(find_frequent_categories(column)):
        yield Feature(column.name, str(labels[place]), before[:, i], after[:, i])


def _drop_base_categories(features: Sequence[Feature]) -> list[Feature]:
    """Return the features without the most frequent category of each column, and without constant ones."""
    largest: dict[str, float] = {}
    for f in features:
        if f.category is not None:
            largest[f.column] = max(largest.get(f.column, 0.0), float(f.before.sum()))
    used, dropped = [], set()
    for f in features:
        if f.category is not None and f.column not in dropped and f.before.sum() == largest[f.column]:
            dropped.add(f.column)
        elif f.before.min() < f.before.max():
            used.append(f)
    if not used:
        raise NotApplicable("the columns of the task are constant")
    return used


def _fit(sides: Sides, used: Sequence[Feature]) -> Iterator[dict[str, Any]]:
    old, errors = fit_coefficients(np.column_stack([f.before for f in used]), sides.before)
    present = [i for i, f in enumerate(used) if f.after.min() < f.after.max()]  # others vanished from the release
    new: dict[int, float] = {}
    if present:
        with suppress(NotApplicable):
            after = fit_coefficients(np.column_stack([used[i].after for i in present]), sides.after)[0]
            new = dict(zip(present, after.tolist(), strict=True))
    for i, (b, error) in enumerate(zip(old.tolist(), errors.tolist(), strict=True)):
        yield _estimate("coefficient", used[i], (b - WIDTH * error, b, b + WIDTH * error), new.get(i))


def _compare_means(sides: Sides) -> Iterator[dict[str, Any]]:
    for f in sides.features:
        records = f.before.sum()
        if f.category is None or records < 2:
            continue
        mean = float((f.before * sides.before).sum() / records)
        error = float(np.sqrt((f.before * (sides.before - mean) ** 2).sum() / (records - 1) / records))
        after = float((f.after * sides.after).sum() / f.after.sum()) if f.after.sum() else None
        yield _estimate("mean", f, (mean - WIDTH * error, mean, mean + WIDTH * error), after)


def _correlate(sides: Sides) -> Iterator[dict[str, Any]]:
    for f in sides.features:
        r, after = _correlation(f.before, sides.before), _correlation(f.after, sides.after)
        if f.category is None and r is not None and abs(r) < 1 and len(f.before) > 3:
            width = WIDTH / np.sqrt(len(f.before) - 3)
            low, high = (float(np.tanh(np.arctanh(r) + side * width)) for side in (-1, 1))
            yield _estimate("correlation", f, (low, r, high), after)


def _correlation(x: Floats, y: Floats) -> float | None:
    deviations = float(x.std() * y.std())
    return float(((x - x.mean()) * (y - y.mean())).mean()) / deviations if deviations else None


def _estimate(statistic: str, f: Feature, interval: tuple[float, float, float], after: float | None) -> dict[str, Any]:
    low, before, high = interval
    is_inside = after is not None and low <= after <= high
    of = {"statistic": statistic, "column": f.column, "category": f.category}
    return {**of, "before": before, "low": low, "high": high, "after": after, "inside": is_inside}
