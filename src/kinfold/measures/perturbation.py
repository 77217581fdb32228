"""What perturbed columns keep, and what their parameters give away, measured on the released rows.

    pram                 share of values that changed, and how far frequencies moved in standard deviations of the draws
    noise                mean, variance and, of correlated noise, correlations; values outside of the original range
    rank swapping        largest distance in ranks, rank correlation, and whether the column still holds the same values
    micro-averages       the least number of records that share a value; mean and variance
    record swapping      households that exchanged their regions, and how far the records of a region moved

`loss.perturbed` has these figures by column, `risk.perturbed_linkage` the share of records that are linked by an
attacker who knows the true values of all perturbed columns, and how they were perturbed. Quasi-identifiers are averaged
after they are perturbed: their figures are those before the average, and links by them are `risk.linkage`.

A broken invariant (a value further away in ranks, a missing value that moved, a category that cannot be drawn, a region
that is not that of the household's partner) is an error: the release is not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import VerifyError, plural
from kinfold.measures.formulas.arrays import Floats, NotApplicable
from kinfold.measures.formulas.perturbation import (
    LogLikelihood,
    compute_count_deviations,
    measure_informed_links,
    measure_rank_correlation,
    measure_rank_gap,
)
from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.encoding import CategoricalAttribute, encode
from kinfold.policy.perturbation import PerturbedColumn
from kinfold.policy.preparation import PreparedTable
from kinfold.tables.engine import Engine
from kinfold.tables.queries import sample_positions
from kinfold.tables.recoding import encode_dictionary
from kinfold.tables.schema import Kind, Role

MAX_LINKED_RECORDS, MAX_TARGETS = 20_000, 500  # of the attack: about a second for five columns


@dataclass(frozen=True, eq=False)
class PerturbedPair:
    """A perturbed column before and after, of released records: numbers, ranks or codes of categories, NaN for null."""

    bound: BoundColumn
    how: PerturbedColumn
    before: Floats
    after: Floats
    scale: Floats  # the values before of all records

    @property
    def present(self) -> tuple[Floats, Floats]:
        """The values before and after, of the records that have one."""
        present = ~np.isnan(self.before)
        return self.before[present], self.after[present]


def pair_perturbed(
    engine: Engine, prepared: PreparedTable, policy: BoundPolicy, released: Any, kept: NDArray[np.bool_]
) -> list[PerturbedPair]:
    """Return the perturbed columns before and after; raise if a missing value moved."""
    pairs = []
    for bound in policy.columns:
        if (how := bound.perturbed) is None:
            continue
        quasi = bound.role is Role.QUASI
        before = _read(engine, prepared.unperturbed, bound, how)
        after = _read(engine, prepared.frame if quasi else released, bound, how)
        if how.places is not None:
            expected = before[how.places]
            if not np.array_equal(expected if quasi else expected[kept], after):
                raise _broken(bound, "a record has another region than the household that it was swapped with")
        pair = PerturbedPair(bound, how, before if quasi else before[kept], after, before[~np.isnan(before)])
        if (np.isnan(pair.before) != np.isnan(pair.after)).any():
            raise _broken(bound, "a missing value became a value, or a value became missing")
        pairs.append(pair)
    return pairs


def _read(engine: Engine, frame: Any, bound: BoundColumn, how: PerturbedColumn) -> Floats:
    """Return numbers, ranks of ordinal values, or codes of the categories of PRAM; NaN for null."""
    if how.categories:
        index, texts = encode_dictionary(engine.collect(frame, {bound.name: None}).column(0))
        place = {text: float(code) for code, text in enumerate(how.categories)}
        texts = texts.to_pylist()
        if any(text not in place for text in texts):
            raise _broken(bound, "a value is none of its categories")
        missing = np.nan if how.places is None else float(len(place))  # a household without a region can be swapped too
        codes = np.array([*(place[text] for text in texts), missing])
        return np.asarray(codes[index])
    if bound.kind is Kind.ORDINAL:
        attribute = encode(engine, frame, [bound])[0]
        assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  ordinal
        return np.where(attribute.codes == attribute.null_code, np.nan, attribute.codes.astype(np.float64))
    values = engine.collect(frame, {bound.name: bound.column}).column(0)
    return np.array(values.to_numpy(zero_copy_only=False), np.float64)


def describe_kept(pair: PerturbedPair) -> tuple[dict[str, Any], str]:
    """Return what a column keeps, as figures and as a sentence; raise if an invariant does not hold."""
    kind = pair.how.kind
    known = {"pram": _describe_pram, "rank swapping": _describe_swaps, "record swapping": _describe_exchange}
    describe = known.get(kind, _describe_numbers)
    figures, sentence = describe(pair)
    return {"kind": kind, "changed": _share_changed(pair), **figures}, f"'{pair.bound.name}', {kind}: {sentence}"


def _share_changed(pair: PerturbedPair) -> float:
    before, after = pair.present
    return float((before != after).mean()) if len(before) else 0.0


def _describe_pram(pair: PerturbedPair) -> tuple[dict[str, Any], str]:
    matrix = pair.how.matrix
    before, after = (side.astype(np.intp) for side in pair.present)
    if (matrix[before, after] <= 0).any():
        raise _broken(pair.bound, "a value has the probability 0")
    counts, new = (np.bincount(side, minlength=len(matrix)) for side in (before, after))
    deviations = compute_count_deviations(matrix, counts)
    moved = np.abs(new - counts @ matrix)
    most = float(np.divide(moved, deviations, out=np.zeros(len(matrix)), where=deviations > 0).max())
    expected = float(counts @ (1 - np.diag(matrix)) / max(counts.sum(), 1))
    figures = {"expected_changed": expected, "frequencies_moved": most}
    sentence = f"{_share_changed(pair):.1%} of the values changed ({expected:.1%} expected)"
    return figures, f"{sentence}; frequencies moved by at most {most:.2g} standard deviations of the draws"


def _describe_swaps(pair: PerturbedPair) -> tuple[dict[str, Any], str]:
    before, after = pair.present
    records, percent = len(pair.scale), pair.how.parameters["percent"]
    gap = measure_rank_gap(before, after, pair.scale)
    if gap * 100 >= percent * records:
        raise _broken(pair.bound, "a value was swapped further than its range of ranks")
    same = bool(np.array_equal(np.sort(after), np.sort(before))) if len(before) == records else None
    if same is False:
        raise _broken(pair.bound, "the values are not those of the column")
    try:
        correlation = measure_rank_correlation(before, after)
    except NotApplicable:
        correlation = None
    figures = {"largest_gap": gap / records, "rank_correlation": correlation, "same_values": same}
    kept = "the column holds the same values" if same else "records that are left out took some values along"
    text = "unknown" if correlation is None else f"{correlation:.4f}"
    return figures, f"values moved by at most {gap / records:.2%} of the ranks; rank correlation {text}; {kept}"


def _describe_exchange(pair: PerturbedPair) -> tuple[dict[str, Any], str]:
    counts, size = pair.how.counts, len(pair.how.matrix)
    before, after = (np.bincount(side.astype(np.intp), minlength=size) for side in (pair.before, pair.after))
    moved = int(np.abs(after - before).max())
    sentence = f"{counts['swapped']:,} of {plural(counts['households'], 'household')} exchanged their regions"
    sentence += f"; the records of a region changed by at most {moved:,}"
    if counts["unmatched"]:
        sentence += f"; {counts['unmatched']:,} of {counts['at_risk']:,} at risk found none to exchange with"
    return {**counts, "records_moved": moved}, sentence


def _describe_numbers(pair: PerturbedPair) -> tuple[dict[str, Any], str]:
    before, after = pair.present
    deviation = float(before.std()) if len(before) else 0.0
    if not deviation > 0:
        return {"mean_moved": None, "variance_ratio": None}, "the released records share one value"
    moved = float((after.mean() - before.mean()) / deviation)
    ratio = float(after.var() / before.var())
    outside = int(((after < pair.scale.min()) | (after > pair.scale.max())).sum())
    figures: dict[str, Any] = {"mean_moved": moved, "variance_ratio": ratio, "outside_range": outside}
    sentence = f"the mean moved by {moved:.2g} standard deviations; the variance is {ratio:.4g} times the original"
    if pair.how.kind == "micro-averages":
        least = int(np.unique(after, return_counts=True)[1].min())
        return {**figures, "least_shared": least}, f"{plural(least, 'record')} or more share each value; {sentence}"
    expected = 1 + pair.how.variance / float(np.var(pair.scale))
    values = plural(outside, "value lies", "values lie")
    figures["expected_variance_ratio"] = expected
    return figures, f"{sentence} ({expected:.4g} expected); {values} outside of the original range"


def describe_correlations(pairs: Sequence[PerturbedPair]) -> tuple[dict[str, Any], str] | None:
    """Return how far the correlations of columns with correlated noise moved, or None if there is none."""
    correlated = [pair for pair in pairs if _is_correlated(pair)]
    if len(correlated) < 2:
        return None
    sides = [np.column_stack(side) for side in zip(*((p.before, p.after) for p in correlated), strict=True)]
    complete = ~np.isnan(sides[0]).any(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = np.abs(np.subtract(*(np.corrcoef(side[complete], rowvar=False) for side in sides)))
    most = float(np.nanmax(moved, initial=0.0))
    return {"correlations_moved": most}, f"correlated noise: correlations moved by at most {most:.2g}"


def _is_correlated(pair: PerturbedPair) -> bool:
    return pair.how.kind == "correlated noise"


def _broken(bound: BoundColumn, what: str) -> VerifyError:
    return VerifyError(f"column '{bound.name}' is not perturbed as the policy says: {what}", fix="report this")


def link_perturbed(pairs: Sequence[PerturbedPair]) -> tuple[float, float]:
    """Return the share of records linked by their perturbed columns, and the share if they were not perturbed."""
    others = [pair for pair in pairs if pair.bound.role is not Role.QUASI]
    if not others or not len(others[0].before):
        raise NotApplicable("no column that is released as it is was perturbed")
    rows = sample_positions(len(others[0].before), MAX_LINKED_RECORDS)
    targets = np.unique(np.linspace(0, len(rows) - 1, MAX_TARGETS).astype(np.intp)).tolist()
    likelihoods = [*_build_likelihoods(others, rows)]
    values = np.nan_to_num(np.column_stack([pair.before[rows] for pair in others]), nan=np.inf)
    unperturbed = len(np.unique(values, axis=0)) / len(values)
    return measure_informed_links(likelihoods, targets), unperturbed


def _build_likelihoods(pairs: Sequence[PerturbedPair], rows: NDArray[np.int64]) -> Iterator[LogLikelihood]:
    correlated = [pair for pair in pairs if _is_correlated(pair)]
    if correlated:
        yield _noise_likelihood(correlated, rows)
    for pair in pairs:
        if _is_correlated(pair):
            continue
        if pair.how.categories:
            yield _pram_likelihood(pair, rows)
            continue
        build = {"rank swapping": _swap_likelihood, "micro-averages": _mean_likelihood}
        likelihood = build.get(pair.how.kind)
        yield likelihood(pair, rows) if likelihood else _noise_likelihood([pair], rows)


def _noise_likelihood(pairs: Sequence[PerturbedPair], rows: NDArray[np.int64]) -> LogLikelihood:
    """Return normal densities; a missing value of one side fits only a missing value of the other."""
    before, after = (np.column_stack([getattr(pair, side)[rows] for pair in pairs]) for side in ("before", "after"))
    share = pairs[0].how.parameters["share"]
    share = share if _is_correlated(pairs[0]) else share**2
    complete = ~np.isnan(before).any(axis=1)
    enough = complete.sum() > 1
    spread = np.atleast_2d(np.cov(before[complete], rowvar=False, bias=True)) if enough else np.eye(len(pairs))
    precision = np.linalg.pinv(share * spread)

    def likelihood(target: int) -> Floats:
        errors = after - before[target]
        fits = (np.isnan(after) == np.isnan(before[target])).all(axis=1)
        errors = np.where(np.isnan(errors), 0.0, errors)
        return np.where(fits, -0.5 * np.einsum("ij,jk,ik->i", errors, precision, errors), -np.inf)

    return likelihood


def _pram_likelihood(pair: PerturbedPair, rows: NDArray[np.int64]) -> LogLikelihood:
    size = len(pair.how.matrix)
    matrix = np.eye(size + 1)  # the last category: missing
    matrix[:size, :size] = pair.how.matrix
    before, after = (np.nan_to_num(side[rows], nan=size).astype(np.intp) for side in (pair.before, pair.after))
    with np.errstate(divide="ignore"):
        logarithms = np.log(matrix)
    return lambda target: logarithms[before[target], after]


def _swap_likelihood(pair: PerturbedPair, rows: NDArray[np.int64]) -> LogLikelihood:
    """Return 0 within the range of ranks, else minus infinity."""
    scale, before, after = np.sort(pair.scale), pair.before[rows], pair.after[rows]
    low, high = np.searchsorted(scale, after, "left"), np.searchsorted(scale, after, "right") - 1
    window = pair.how.parameters["percent"] * len(scale) / 100

    def likelihood(target: int) -> Floats:
        x = before[target]
        if np.isnan(x):
            return np.where(np.isnan(after), 0.0, -np.inf)
        first, last = np.searchsorted(scale, x, "left"), np.searchsorted(scale, x, "right") - 1
        near = (low - last < window) & (first - high < window) & ~np.isnan(after)
        return np.where(near, 0.0, -np.inf)

    return likelihood


def _mean_likelihood(pair: PerturbedPair, rows: NDArray[np.int64]) -> LogLikelihood:
    """Return 0 for the nearest mean below and above, else minus infinity."""
    before, after = pair.before[rows], pair.after[rows]
    means = np.unique(after[~np.isnan(after)])

    def likelihood(target: int) -> Floats:
        x = before[target]
        if np.isnan(x):
            return np.where(np.isnan(after), 0.0, -np.inf)
        place = int(np.searchsorted(means, x))
        near = means[max(place - 1, 0) : place + 1]
        return np.where(np.isin(after, near), 0.0, -np.inf)

    return likelihood


def measure_perturbation(
    engine: Engine, prepared: PreparedTable, policy: BoundPolicy, released: Any, kept: NDArray[np.bool_]
) -> tuple[dict[str, Any], float | None, list[str]]:
    """Return what each perturbed column keeps, the share of linked records, and notes for the holder."""
    pairs = pair_perturbed(engine, prepared, policy, released, kept)
    described = [describe_kept(pair) for pair in pairs]
    figures = {pair.bound.name: values for pair, (values, _) in zip(pairs, described, strict=True)}
    notes = [sentence for _, sentence in described]
    if correlations := describe_correlations(pairs):
        notes.append(correlations[1])
        for pair in filter(_is_correlated, pairs):
            figures[pair.bound.name] |= correlations[0]
    try:
        linked, before = link_perturbed(pairs)
    except NotApplicable:
        return figures, None, notes
    names = ", ".join(f"'{pair.bound.name}'" for pair in pairs if pair.bound.role is not Role.QUASI)
    attacker = f"risk.perturbed_linkage: someone who knows {names} before the perturbation, and its parameters,"
    return figures, linked, [*notes, f"{attacker} links {linked:.1%} of the records by them ({before:.1%} unperturbed)"]
