"""Classes at cell level: hierarchies as nodes, merging of classes, and rebuilding of classes.

Each class has a statement: the lowest common ancestor of its records in every attribute. Codes are in subtree order, so
a node of a hierarchy covers a range of codes. A level that covers the same values as the level below gets no node.

Merging:

    in rounds, until no class fails a promise:
        for each failing class find the class that costs least to merge with, such that the union keeps the promises;
        a class without such a partner waits; if no class has one, each takes the nearest class
        the cheapest merges are made first; a class takes part in one merge per round

The models check all candidate unions of a round in one tally. t-closeness compares with the whole tally, so one more
class is added that restores the distribution of the table.

Rebuilding: parts of the partition are taken apart and put together better, by annealing (`kernels/cell_search`). The
models are asked beforehand about every composition that a class of the pool can have (how many of its records hold each
confidential value). If there are too many compositions, classes are merged but never rebuilt.

Cost: merging builds a tree over the classes and searches it once per round, about log2(class size) rounds; rebuilding
takes about 0.1 ms per step for any table size.
Ties: the cheapest merge, then the first class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.errors import Unreachable
from kinfold.methods.annealing import Annealer, Budget, Refinement
from kinfold.methods.generalize.domain import Codes, Domain, Floats, Mask
from kinfold.methods.generalize.levels import CellLoss, Models, mark_failing, required_k
from kinfold.progress import Progress, no_progress
from kinfold.tables.tally import Ints, Spread, Tally


@dataclass(frozen=True, eq=False)
class Trees:
    """The hierarchies of a domain as nodes: the range of codes of each node, its parent and its loss."""

    low: Codes
    high: Codes
    parent: Codes
    loss: Floats
    leaves: Ints  # the first node of each attribute
    leaf_nodes: Codes  # the node of each code: the code itself, or the top if both lose the same

    @classmethod
    def from_loss(cls, loss: CellLoss) -> Trees:
        """Number the nodes of each attribute, its codes first."""
        columns = zip(loss.domain.paths, loss.tables, loss.weights, strict=True)
        parts = [_number_nodes(paths, table, weight) for paths, table, weight in columns]
        start = np.concatenate([[0], np.cumsum([len(part[0]) for part in parts])])
        low, high, parent, losses, leaf_nodes = (np.concatenate([part[i] for part in parts]) for i in range(5))
        shift = np.repeat(start[:-1], [len(part[0]) for part in parts])
        return cls(
            low.astype(np.int32),
            high.astype(np.int32),
            (parent + shift).astype(np.int32),
            losses.astype(np.float64),
            start[:-1].astype(np.int64),
            (leaf_nodes + shift).astype(np.int32),
        )

    @property
    def forest(self) -> Any:
        """The nodes as an argument of the kernels."""
        return kernels.load("statements").Forest(self.low, self.high, self.parent, self.loss)

    def encode_rows(self, domain: Domain) -> Codes:
        """Return the rows of the domain as nodes."""
        return np.ascontiguousarray(self.leaf_nodes[domain.codes + self.leaves])


def _number_nodes(paths: Codes, table: Floats, weight: float) -> tuple[NDArray[Any], ...]:
    """Return low, high, parent, loss and leaf node of each node of one attribute: the codes, then level by level."""
    codes = np.arange(len(paths))
    low, high = [*codes], [*codes]
    parent, losses = list(range(len(codes))), [*(weight * table[:, 0])]
    at = codes.copy()  # the highest node so far above each code
    for up in range(1, paths.shape[1]):
        order = np.argsort(paths[:, up], kind="stable")
        for under in np.split(order, np.flatnonzero(np.diff(paths[order, up])) + 1):
            if high[at[under[0]]] - low[at[under[0]]] + 1 == len(under):
                continue  # it covers the same codes as its child
            node = len(low)
            for child in np.unique(at[under]):
                parent[child] = node
            at[under] = node
            low.append(under[0])
            high.append(under[-1])
            parent.append(node)
            losses.append(weight * table[under[0], up])
    leaf_nodes = np.arange(len(low))
    if paths.shape[1] > 1:
        leaf_nodes[: len(codes)][table[:, 0] >= table[:, -1]] = len(low) - 1
    return tuple(np.array(column) for column in (low, high, parent, losses, leaf_nodes))


PARTNER_COUNTS = (16, 128, 1024)  # nearest classes that are tried, in steps


@dataclass(eq=False)
class MergedClasses:
    """Classes: their statements, their tally, and the class of each row."""

    statements: Codes
    tally: Tally
    labels: Ints

    @classmethod
    def from_rows(cls, rows: Codes, tally: Tally) -> MergedClasses:
        """Return the classes of rows with equal statements, in the order of their first rows."""
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        into = rank[inverse.ravel()]
        return cls(np.ascontiguousarray(rows[np.sort(first)]), tally.merge(into, {}), into)


def merge_classes(
    classes: MergedClasses, trees: Trees, models: Models, progress: Progress = no_progress
) -> MergedClasses:
    """Merge classes until each keeps every promise."""
    total = -1
    while (failing := mark_failing(models, classes.tally)).any():
        count = int(failing.sum())
        total = max(total, count)
        progress(total - count, total)
        if len(classes.tally) == 1:
            what = f"all {classes.tally.records} records as one class do not keep the promises of the policy"
            raise Unreachable(what, fix="require less")
        classes = _merge_round(classes, trees, models, np.flatnonzero(failing))
    return classes


def _merge_round(classes: MergedClasses, trees: Trees, models: Models, failing: Ints) -> MergedClasses:
    if all(model.column is None for model in models):
        return merge_nearest(classes, trees, failing)
    return _merge_pairs(classes, trees, failing, *_find_partners(classes, trees, models, failing))


def merge_nearest(classes: MergedClasses, trees: Trees, failing: Ints) -> MergedClasses:
    """Merge some classes with the class that costs least, the cheapest first; each takes part in one merge."""
    partners, costs = find_nearest_classes(trees, classes.statements, classes.tally.sizes, failing, 1)
    return _merge_pairs(classes, trees, failing, partners[:, 0].astype(np.int64), costs[:, 0])


def summarize_classes(domain: Domain, trees: Trees, labels: Ints) -> MergedClasses:
    """Return classes that are given by the label of each row."""
    rows = trees.encode_rows(domain)
    kinds = np.unique(np.column_stack([labels, rows]), axis=0)
    statements = np.ascontiguousarray(kinds[np.unique(kinds[:, 0], return_index=True)[1], 1:].astype(np.int32))
    for label, *row in kinds:
        kernels.load("statements").widen(trees.forest, statements[label], np.array(row, np.int32))
    return MergedClasses(statements, domain.tally.merge(labels, {}), labels)


def _merge_pairs(classes: MergedClasses, trees: Trees, failing: Ints, partner: Ints, cost: Floats) -> MergedClasses:
    merged = np.zeros(len(classes.tally), np.bool_)
    into = np.arange(len(classes.tally))
    statements = classes.statements.copy()
    for i in np.lexsort((failing, cost)):
        g, h = int(failing[i]), int(partner[i])
        if h >= 0 and not merged[g] and not merged[h]:
            merged[[g, h]] = True
            into[g] = h
            kernels.load("statements").widen(trees.forest, statements[h], statements[g])
    kept = np.flatnonzero(into == np.arange(len(into)))
    number = np.full(len(into), -1, np.int64)
    number[kept] = np.arange(len(kept))
    into = number[into]
    return MergedClasses(np.ascontiguousarray(statements[kept]), classes.tally.merge(into, {}), into[classes.labels])


def _find_partners(classes: MergedClasses, trees: Trees, models: Models, failing: Ints) -> tuple[Ints, Floats]:
    """Return the nearest class whose union with each failing class holds, and the cost.

    The partner is -1 if no near class holds; if that is so for all classes, the nearest classes are returned.
    """
    partner: Ints = np.full(len(failing), -1, np.int64)
    cost: Floats = np.full(len(failing), np.inf)
    waiting = np.arange(len(failing))
    for count in PARTNER_COUNTS:
        near, costs = find_nearest_classes(trees, classes.statements, classes.tally.sizes, failing[waiting], count)
        if count == PARTNER_COUNTS[0]:
            fallback = near[:, 0].astype(np.int64), costs[:, 0]
        pair, rank = np.nonzero(near >= 0)
        unions = _tally_unions(classes.tally, failing[waiting][pair], near[pair, rank])
        holds = np.zeros(near.shape, np.bool_)
        holds[pair, rank] = ~mark_failing(models, unions)[:-1]
        done, first = holds.any(axis=1), np.argmax(holds, axis=1)
        rows = np.arange(len(waiting))[done]
        partner[waiting[done]], cost[waiting[done]] = near[rows, first[done]], costs[rows, first[done]]
        waiting = waiting[~done]
        if not len(waiting) or count >= len(classes.tally):
            break
    return (partner, cost) if (partner >= 0).any() else fallback


def find_nearest_classes(
    trees: Trees, statements: Codes, sizes: Ints, classes: Ints, count: int
) -> tuple[Codes, Floats]:
    """Return the `count` cheapest merge partners of each class, -1 if there are fewer, and their costs."""
    partners = np.full((len(classes), count), -1, np.int32)
    costs = np.full((len(classes), count), np.inf)
    tree = _build_tree(trees, statements, sizes)
    kernels.load("statements").find_partners(tree, trees.forest, classes.astype(np.int64), partners, costs)
    return partners, costs


def _build_tree(trees: Trees, statements: Codes, sizes: Ints) -> Any:
    kernel = kernels.load("statements")
    count, q = statements.shape
    capacity = 2 * count + 2
    starts, ends, children = (np.zeros(capacity, np.int32) for _ in range(3))
    lows, highs = (np.zeros((capacity, q), np.int32) for _ in range(2))
    order = np.arange(count, dtype=np.int32)
    bounds = np.zeros(capacity), np.zeros(capacity), np.zeros(capacity, np.int64)
    tree = kernel.StatementTree(order, starts, ends, children, lows, highs, *bounds, statements, sizes)
    kernel.build(tree, trees.forest, count)
    return tree


def _tally_unions(tally: Tally, one: Ints, other: Codes) -> Tally:
    """Return the tally of the union of each pair, and of one class that restores the distribution of the table."""
    pairs = len(one)
    sizes = tally.sizes[one] + tally.sizes[other]
    cells, copies = {}, 1
    for name, spread in tally.spreads.items():
        start = np.searchsorted(spread.group, np.arange(len(tally) + 1))
        parts = [_list_cells(spread, start, side) for side in (one, other)]
        code = np.concatenate([part[1] for part in parts])
        count = np.concatenate([part[2] for part in parts])
        pair = np.concatenate([part[0] for part in parts])
        cells[name] = (pair, code, count)
        held = np.bincount(code, count, len(spread.values))
        whole = spread.totals()
        copies = max(copies, int(np.ceil(held[whole > 0] / whole[whole > 0]).max()) + 1)
    spreads = {}
    for name, (pair, code, count) in cells.items():
        spread = tally.spreads[name]
        rest = copies * spread.totals() - np.bincount(code, count, len(spread.values)).astype(np.int64)
        width = len(spread.values)
        cell = np.concatenate([pair * width + code, pairs * width + np.arange(width)])
        cell, inverse = np.unique(cell, return_inverse=True)
        total = np.bincount(inverse, np.concatenate([count, rest])).astype(np.int64)
        spreads[name] = Spread(cell // width, cell % width, total, spread.values)
    rest_size = copies * tally.records - int(sizes.sum())
    return Tally({}, np.concatenate([sizes, [rest_size]]), spreads)


def _list_cells(spread: Spread, start: Ints, classes: Ints | Codes) -> tuple[Ints, Ints, Ints]:
    counts = start[classes + 1] - start[classes]
    pair = np.repeat(np.arange(len(classes)), counts)
    place = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(start[classes], counts)
    return pair, spread.code[place], spread.count[place]


MAX_POOL_RECORDS = 60  # taken apart in one step
MAX_COMPOSITIONS = 2_000_000  # two megabytes
NEIGHBOURS_PER_RECORD = 16  # nearest statements
STEPS_PER_CHUNK = 10_000  # between two calls of progress
START_TEMPERATURE = 0.02  # about the cost that the first steps may add


@dataclass(frozen=True, eq=False)
class Compositions:
    """The compositions of classes: the weight of each record, and whether a class with a sum of weights holds."""

    weight: Ints
    holds: Mask
    pool: int
    count: Ints  # records of each row

    @classmethod
    def from_tally(cls, tally: Tally, models: Models) -> Compositions | None:
        """Check every composition of up to MAX_POOL_RECORDS records; return None if there are too many."""
        if (tally.sizes != 1).any():
            return cls._from_sizes(tally, models)
        names = [name for name in tally.spreads if any(model.column == name for model in models)]
        value, values = _combine_values(tally, names)
        pool = MAX_POOL_RECORDS
        while (pool + 1) ** values > MAX_COMPOSITIONS:
            pool -= 1
            if pool < 24:
                return None
        weight = (pool + 1) ** np.arange(values, dtype=np.int64)
        holds = np.zeros((pool + 1) ** values, np.bool_)
        counts = np.arange(pool + 1)[:, None]  # all compositions
        for _ in range(values - 1):
            rest = pool - counts.sum(axis=1)
            more = np.concatenate([np.arange(count + 1) for count in rest])
            counts = np.column_stack([np.repeat(counts, rest + 1, axis=0), more])
        counts = np.asarray(counts[counts.sum(axis=1) > 0], np.int64)
        holds[counts @ weight] = ~_mark_failing_counts(tally, models, names, value, counts)
        return cls(weight[value], holds, pool, tally.sizes)

    @classmethod
    def _from_sizes(cls, tally: Tally, models: Models) -> Compositions | None:
        """Check class sizes only, for rows of several records; return None if a model needs more than sizes."""
        max_size = required_k(models)  # larger rows keep k as well
        if any(model.column is not None for model in models) or MAX_POOL_RECORDS * max_size > MAX_COMPOSITIONS:
            return None
        sizes = np.arange(1, MAX_POOL_RECORDS * max_size + 1, dtype=np.int64)
        holds = np.concatenate([[False], ~mark_failing(models, Tally({}, sizes))])
        return cls(np.minimum(tally.sizes, max_size), holds, MAX_POOL_RECORDS, tally.sizes)


class StatementSearch:
    """The search space of the annealer: classes with lowest common ancestors as statements."""

    chunk = STEPS_PER_CHUNK

    def __init__(self, trees: Trees, records: Codes, compositions: Compositions, seed: int = 0) -> None:
        cell_search = kernels.prepare("cell_search")  # compiling does not count as time
        stream = kernels.load("draws").make_stream(seed)
        self.trees = trees
        self.parts = cell_search.make_parts(compositions.pool, records.shape[1])
        _, first, inverse = np.unique(records, axis=0, return_index=True, return_inverse=True)
        statements, sizes = np.ascontiguousarray(records[first]), np.ones(len(first), np.int64)
        nearest, _ = find_nearest_classes(trees, statements, sizes, np.arange(len(first)), NEIGHBOURS_PER_RECORD)
        near = np.where(nearest >= 0, first[nearest], -1)[inverse.ravel()].astype(np.int32)  # a record of each
        self.classes = cell_search.make_classes(
            records, compositions.weight, compositions.count, compositions.holds, near, stream
        )

    def begin(self, labels: Ints) -> None:
        """Continue from these classes."""
        cell_search = kernels.load("cell_search")
        self.classes.label[:] = labels
        cell_search.lay_out(self.classes, self.trees.forest)
        self.cost = cell_search.cost(self.classes, self.trees.forest, self.parts)

    def take_steps(self, temperatures: Floats) -> None:
        """Take one step per temperature."""
        cell_search = kernels.load("cell_search")
        self.cost += cell_search.rebuild(self.classes, self.trees.forest, self.parts, temperatures)

    def improve(self, labels: Ints, cost: float) -> tuple[Ints, float]:
        """Return the cheaper of these classes and the current ones."""
        if self.cost < cost:
            return self.classes.label.astype(np.int64), self.cost
        return labels, cost


def rebuild_classes(
    space: StatementSearch, labels: Ints, first: int, budget: Budget, progress: Progress = no_progress
) -> Refinement:
    """Return better classes within the budget; `first` is the number of steps of the first cycle."""
    space.begin(labels)
    annealer = Annealer(space, labels, space.cost)
    return annealer.run(annealer.plan_doubling_cycles(first, START_TEMPERATURE), budget, progress)


def _combine_values(tally: Tally, names: list[str]) -> tuple[Ints, int]:
    """Return one code per record for its values in all columns, and the number of codes."""
    value = np.zeros(len(tally), np.int64)
    for name in names:
        spread = tally.spreads[name]
        held = np.zeros(len(tally), np.int64)
        held[spread.group] = spread.code
        value = value * len(spread.values) + held
    distinct, value = np.unique(value, return_inverse=True)
    return value.astype(np.int64), len(distinct)


def _mark_failing_counts(tally: Tally, models: Models, names: list[str], value: Ints, counts: Ints) -> Mask:
    """Mark the failing compositions; one more class restores the distribution of the table."""
    first = np.full(counts.shape[1], -1)
    first[value[::-1]] = np.arange(len(value))[::-1]
    whole = np.bincount(value, tally.sizes, counts.shape[1]).astype(np.int64)
    copies = int(np.ceil((counts.sum(axis=0) / whole).max())) + 1
    table = np.vstack([counts, copies * whole - counts.sum(axis=0)])
    spreads = {}
    for name in names:
        spread = tally.spreads[name]
        held = np.zeros(len(tally), np.int64)
        held[spread.group] = spread.code
        by_code = np.zeros((len(table), len(spread.values)), np.int64)
        for v in range(counts.shape[1]):
            by_code[:, held[first[v]]] += table[:, v]
        group, code = np.nonzero(by_code)
        spreads[name] = Spread(group, code, by_code[group, code], spread.values)
    return mark_failing(models, Tally({}, table.sum(axis=1), spreads))[:-1]
