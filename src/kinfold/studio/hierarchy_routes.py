"""Routes of hierarchies: build one, change it step by step, show it as a tree, import and export it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from starlette.responses import Response

from kinfold.errors import KinfoldError
from kinfold.hierarchies import Hierarchy, build_from_rows, read_arx, write_arx
from kinfold.hierarchies.grouping import (
    GROUPING_DESCRIPTIONS,
    Rows,
    build_label_tree,
    get_label_rows,
    merge_labels,
    propose_groupings,
    rename_label,
    split_group,
)
from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import build_hierarchy, collect_value_texts, locate_values
from kinfold.policy.model import ColumnPolicy, HierarchySpec, Output, Policy
from kinfold.policy.preparation import prepare
from kinfold.policy.privacy import Privacy
from kinfold.policy.toml_values import KeyPath
from kinfold.profiling.hierarchy_proposals import MAX_INLINE_ROWS
from kinfold.profiling.profile import propose_hierarchy_for
from kinfold.studio.guard import Call, read_text_body, route
from kinfold.studio.policy_routes import decide, get_policy, get_usable_policy, make_download, query_table
from kinfold.studio.refusals import Refusal, make_refusal
from kinfold.studio.sessions import StudioSession
from kinfold.studio.table_jobs import HIERARCHY_FOLDER
from kinfold.studio.table_loading import clean_name
from kinfold.tables.engine import Engine
from kinfold.tables.plain_columns import encode_columns
from kinfold.tables.schema import Kind, Role
from kinfold.tables.tally import Tally

MAX_LABEL_ROWS = 2_000  # a page gets the rows of labels of a smaller hierarchy


@route("/api/hierarchy")
async def show(call: Call) -> Any:
    """Return the current hierarchy."""
    session, name = _get_column(call)
    return await _describe(session, name, await _get_values(session, name), _get_spec(session, name))


@route("/api/hierarchy/effect")
async def show_effect(call: Call) -> Any:
    """Return the shares of unique records at each level, if only this column is generalized."""
    session, name = _get_column(call)
    policy, spec = get_usable_policy(session), _get_spec(session, name)
    roles = [(each, column.role) for each, column in policy.columns.items()]
    key = ("effect", name, str(roles), str(policy.columns.get(name)))
    counted = await query_table(
        session, lambda engine, frame: count_unique_by_level(engine, frame, policy, name, spec), key
    )
    return dict(zip(("unique", "alone"), counted, strict=True))


@route("/api/hierarchy", "PUT")
async def change(call: Call) -> Any:
    """Build or change the hierarchy; with `try`, return it without saving."""
    session, name = _get_column(call)
    values = await _get_values(session, name)
    keys = await asyncio.to_thread(_read_requested, call.body, values, _get_spec(session, name))
    if call.body.get("try"):
        spec = None if keys is None else parse_hierarchy(name, keys)
        await asyncio.to_thread(try_hierarchy, values, spec)  # or raise
        return await _describe(session, name, values, spec)
    await _save(session, name, values, keys)
    return None


@route("/api/hierarchy/arx", "POST", upload=True)
async def import_file(call: Call) -> None:
    """Import a hierarchy from a CSV file of ARX."""
    session, name = _get_column(call)
    path = session.make_folder(session.new_id("h")) / "hierarchy.csv"
    path.write_text(await read_text_body(call.request), encoding="utf-8")
    rows = get_label_rows(read_arx(path))
    await _save(session, name, await _get_values(session, name), _to_levels(rows))


@route("/api/hierarchy/arx")
async def export_file(call: Call) -> Response:
    """Download the hierarchy as a CSV file of ARX."""
    session, name = _get_column(call)
    hierarchy = try_hierarchy(await _get_values(session, name), _get_spec(session, name))
    path = session.make_folder(session.new_id("h")) / "hierarchy.csv"
    write_arx(hierarchy, path)
    return make_download(path.read_bytes(), f"{clean_name(name)}.csv", "text/csv")


async def _save(session: StudioSession, name: str, values: ColumnValues, keys: Mapping[str, Any] | None) -> None:
    """Write a hierarchy into the policy; a long table of labels goes into a file."""
    if keys is not None:
        await asyncio.to_thread(try_hierarchy, values, parse_hierarchy(name, keys))  # raises if it is invalid
        rows = keys.get("levels")
        if rows is not None and len(rows) > MAX_INLINE_ROWS:
            keys = {"file": _save_hierarchy(session, name, build_from_rows(rows))}
    changes: dict[KeyPath, Any] = {("columns", name, "hierarchy"): keys}
    if name not in get_policy(session)[0].columns:
        changes = {("columns", name, "role"): "quasi-identifier", **changes}
    what = f"hierarchy of {name}" if keys is not None else f"no hierarchy of {name}"
    await decide(session, changes, what)


async def _get_values(session: StudioSession, name: str) -> ColumnValues:
    policy = get_usable_policy(session)
    column = policy.columns.get(name)
    key = ("values", name, column.model_dump_json(exclude={"hierarchy"}) if column else "")
    values: ColumnValues = await query_table(
        session, lambda engine, frame: count_column_values(engine, frame, policy, name), key
    )
    return values


async def _describe(session: StudioSession, name: str, values: ColumnValues, spec: HierarchySpec | None) -> Any:
    proposal = await query_table(
        session, lambda engine, frame: propose_hierarchy_for(engine, frame, name), ("proposed", name)
    )
    keys = None if spec is None else _describe_spec(get_policy(session)[0], name, spec)
    return {"column": name, "spec": keys, **await asyncio.to_thread(_describe_hierarchy, values, spec, proposal)}


def _describe_hierarchy(values: ColumnValues, spec: HierarchySpec | None, proposal: Any) -> dict[str, Any]:
    """Return a hierarchy by level and as a tree, with its problems and other hierarchies that can be built."""
    problems: list[Any] = []
    try:
        hierarchy = try_hierarchy(values, spec)
    except KinfoldError as error:
        problems, hierarchy = make_refusal(error).problems, try_hierarchy(values, None)
    labels = hierarchy.labels
    return {
        "height": hierarchy.height,
        "values": len(hierarchy),
        "levels": [{"level": n, "labels": len(set(labels[:, n]))} for n in range(hierarchy.height + 1)],
        "tree": build_label_tree(labels.tolist(), values.counts).to_dict(),
        "rows": get_label_rows(hierarchy) if len(hierarchy) <= MAX_LABEL_ROWS else None,
        "counts": dict(values.counts) if len(values.counts) <= MAX_LABEL_ROWS else None,
        "problems": problems,
        **_list_builders(values, proposal, hierarchy),
    }


def _get_column(call: Call) -> tuple[StudioSession, str]:
    session, name = call.session, call.request.query_params.get("column", "")
    _ = session.table
    if name not in session.columns:
        raise Refusal(404, "the table has no such column", "choose one of its columns")
    return session, name


def _get_spec(session: StudioSession, name: str) -> HierarchySpec | None:
    column = get_usable_policy(session).columns.get(name)
    return column.hierarchy if column else None


def _describe_spec(policy: Policy, name: str, spec: HierarchySpec) -> dict[str, Any]:
    """Return the keys of a hierarchy, with the name of its file in the session."""
    keys = spec.model_dump(mode="json", exclude_unset=True)
    relative = policy.columns[name].hierarchy if name in policy.columns else None
    return {**keys, "file": str(relative.file)} if relative and relative.file and "file" in keys else keys


def _read_requested(
    body: Mapping[str, Any], values: ColumnValues, spec: HierarchySpec | None
) -> Mapping[str, Any] | None:
    """Return the keys of the requested hierarchy; None for no hierarchy."""
    if "spec" in body:
        if isinstance(body["spec"], Mapping) and "file" in body["spec"]:
            raise Refusal(422, "files of the server cannot be read", "import the hierarchy instead")
        return None if body["spec"] is None else dict(body["spec"])
    if "build" in body:
        tables = propose_groupings(values.counts, values.order)
        if body["build"] not in tables:
            what = "this hierarchy cannot be built from the values of the column"
            raise Refusal(422, what, f"possible: {', '.join(tables) or 'none'}")
        return _to_levels(tables[body["build"]])
    rows = get_label_rows(try_hierarchy(values, spec))
    return _to_levels(_regroup(rows, body))


def _regroup(rows: Rows, body: Mapping[str, Any]) -> Rows:
    level, name = body.get("level", 1), str(body.get("name", ""))
    if not isinstance(level, int) or isinstance(level, bool):
        raise Refusal(400, "level is not a whole number", "levels start at 1")
    if isinstance(body.get("merge"), list):
        return merge_labels(rows, [str(label) for label in body["merge"]], name, level)
    if "rename" in body:
        return rename_label(rows, str(body["rename"]), name, level)
    if "part" in body:
        return split_group(rows, str(body["part"]), level)
    raise Refusal(400, "the request names no change", "send spec, build, merge, rename or part")


def _to_levels(rows: Rows) -> dict[str, Any]:
    return {"levels": [list(row) for row in rows]}


def _save_hierarchy(session: StudioSession, name: str, hierarchy: Hierarchy) -> str:
    """Write a table of labels to a new file: undo needs the old one."""
    folder = session.folder / HIERARCHY_FOLDER
    folder.mkdir(exist_ok=True)
    safe_name = "".join(char if char.isalnum() and char.isascii() else "_" for char in name)[:40]
    path = folder / f"{safe_name}-{session.new_id('h')}.csv"
    write_arx(hierarchy, path)
    return str(Path(HIERARCHY_FOLDER) / path.name)


def _list_builders(values: ColumnValues, proposal: Any, current: Hierarchy) -> dict[str, Any]:
    """Return the hierarchies that can be built from these values, and which of them is the current one."""
    builders: list[dict[str, Any]] = []
    if proposal is not None and proposal.keys:
        kind = next(iter(proposal.keys))
        builders.append({"build": kind, "keys": dict(proposal.keys), "description": proposal.description})
    tables = propose_groupings(values.counts, values.order)
    labels = current.labels.tolist()
    built = next((name for name, rows in tables.items() if build_from_rows(rows).labels.tolist() == labels), None)
    builders += [
        {"build": name, "description": GROUPING_DESCRIPTIONS[name], "rows": len(rows)} for name, rows in tables.items()
    ]
    return {"builders": builders, "built": built}


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The recoded values of a column, as its hierarchy names them, each with its number of records."""

    bound: BoundColumn
    counts: Mapping[str, int]

    @property
    def order(self) -> tuple[str, ...]:
        """The order of an ordinal column; empty for others."""
        return tuple(self.bound.request.order or ()) if self.bound.kind is Kind.ORDINAL else ()


def count_column_values(engine: Engine, frame: Any, policy: Policy, name: str) -> ColumnValues:
    """Return the recoded values of a column without nulls, each with its number of records."""
    _, bound, tally, texts = _read_values(engine, frame, policy, name)
    counts: dict[str, int] = {}
    for text, records in zip(texts, tally.sizes.tolist(), strict=True):
        if text is not None:
            counts[text] = counts.get(text, 0) + records
    return ColumnValues(bound, counts)


def _read_values(
    engine: Engine, frame: Any, policy: Policy, name: str
) -> tuple[Any, BoundColumn, Tally, list[str | None]]:
    """Return the table with the column recoded, the column, the tally of its values, and their texts in a hierarchy."""
    request = policy.columns.get(name, ColumnPolicy(role=Role.QUASI))
    recoding_keys = {"top", "bottom", "round_to", "map", "type", "order"}
    recoding = request.model_dump(include=recoding_keys, exclude_none=True)
    columns = {name: ColumnPolicy(role=Role.OTHER, **recoding)}
    output = Output(others="release")
    single = Policy(privacy=Privacy(k=2), source=policy.source, columns=columns, output=output)
    frame = prepare(engine, frame, single).frame
    column = engine.schema(frame)[name]
    kind = request.type or (Kind.ORDINAL if request.order else column.kind)
    bound = BoundColumn(column, request, kind, "generalize")
    tally = engine.tally(frame, [name], {})
    texts: list[str | None] = list(tally.keys[name])
    if kind.is_numeric and (column.storage.kind.is_numeric or column.date_format):
        texts = collect_value_texts(engine, engine.tally(frame, [name], {}).tuples, bound)
    return frame, bound, tally, texts


def count_unique_by_level(
    engine: Engine, frame: Any, policy: Policy, name: str, spec: HierarchySpec | None
) -> tuple[list[float], list[float]]:
    """Return the shares of unique records at each level: with the other quasi-identifiers as they are, and alone."""
    frame, bound, single, texts = _read_values(engine, frame, policy, name)
    hierarchy = try_hierarchy(ColumnValues(bound, {text: 1 for text in texts if text is not None}), spec)
    row_of = {text: row for row, text in enumerate(hierarchy.values.tolist())}
    label_row = {key: -1 if text is None else row_of[text] for key, text in zip(single.keys[name], texts, strict=True)}
    quasi = [each for each in engine.schema(frame).names if _is_quasi(policy, each) and each != name]
    tally = engine.tally(frame, [name, *quasi], {})
    own = np.array([label_row[key] for key in tally.keys[name]], np.int64)
    _, others = np.unique(encode_columns(tally.keys, quasi or [name]) * bool(quasi), axis=0, return_inverse=True)
    with_others: list[float] = []
    by_column: list[float] = []
    for level in range(hierarchy.height + 1):
        labels = np.where(own < 0, -1, hierarchy.paths[own, level]) + 1
        _, groups = np.unique(others.ravel() * (labels.max() + 1) + labels, return_inverse=True)
        for shares, codes in ((with_others, groups), (by_column, labels)):
            sizes = np.bincount(codes, tally.sizes)
            shares.append(float((sizes == 1).sum() / max(sizes.sum(), 1)))
    return with_others, by_column


def _is_quasi(policy: Policy, name: str) -> bool:
    return name in policy.columns and policy.columns[name].role is Role.QUASI


def try_hierarchy(values: ColumnValues, spec: HierarchySpec | None) -> Hierarchy:
    """Return the hierarchy of a spec over these values, flat without a spec; raise if it lacks some of them."""
    texts = np.array(list(values.counts), object)
    if spec is None:
        return build_from_rows([(text,) for text in values.counts])
    request = values.bound.request.model_copy(update={"hierarchy": spec})
    bound = BoundColumn(values.bound.column, request, values.bound.kind, "generalize")
    hierarchy = build_hierarchy(bound, texts)
    locate_values(bound, hierarchy, texts)
    return hierarchy


def parse_hierarchy(name: str, keys: Any) -> HierarchySpec:
    """Return the hierarchy that the keys of a column define; raise `PolicyError` with the key of every problem."""
    column = {"role": str(Role.QUASI), "hierarchy": keys}
    spec = Policy.parse({"privacy": {"k": 2}, "columns": {name: column}}).columns[name].hierarchy
    assert spec is not None  # noqa: S101  the column has one
    return spec
