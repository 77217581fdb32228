"""Binding: a policy meets a table. Every column gets its role, its kind and its treatment, or a reason why not.

Problems of the request (unknown columns, roles, averages that do not fit) are gathered in one `PolicyError`; what the
table holds against what was declared (text among numbers, nulls, infinities) in one `DataError`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kinfold.errors import DataError, PolicyError, Problem, plural
from kinfold.request.methods import natural_average
from kinfold.request.policy import ColumnPolicy, Policy, toml_key
from kinfold.request.policy_problems import did_you_mean
from kinfold.request.rules.meaning import BoundRule, bind_rules
from kinfold.rows.formulas import is_formula
from kinfold.rows.header import require_header
from kinfold.rows.reading_hints import remedy, seeming
from kinfold.rows.schema import Column, Kind, Role, Schema, Storage
from kinfold.rows.source_form import Form

AVERAGES = {
    Kind.CONTINUOUS: ("mean", "median", "generalize", "suppress"),
    Kind.DATE: ("mean", "median", "generalize", "suppress"),
    Kind.ORDINAL: ("median", "convex-median", "mode", "generalize", "suppress"),
    Kind.NOMINAL: ("mode", "generalize", "suppress"),
}
NAMED = 20  # columns that a message names


@dataclass(frozen=True)
class BoundColumn:
    """A column of the table with what the policy says of it; `average` is the one to use, `kind` what it is."""

    column: Column
    request: ColumnPolicy
    kind: Kind
    average: str
    named: bool = True  # False: the policy does not name it, `output.others` decided

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def role(self) -> Role:
        """The column's role."""
        return self.request.role

    @property
    def suppressed(self) -> bool:
        """Whether a cell is released as it is or not at all: its values are told apart, and nothing else of them."""
        return self.average == "suppress"

    @property
    def inferred(self) -> bool:
        """Whether the kind was found out, not declared."""
        return self.request.type is None


@dataclass(frozen=True)
class BoundPolicy:
    """A policy that fits a table: its columns in the table's order."""

    request: Policy
    columns: tuple[BoundColumn, ...]
    rows: int
    rules: tuple[BoundRule, ...] = ()

    def of(self, role: Role) -> tuple[BoundColumn, ...]:
        """The columns of a role."""
        return tuple(column for column in self.columns if column.role is role)

    @property
    def compared(self) -> tuple[str, ...]:
        """The quasi-identifiers and confidential columns whose values are told apart by their text."""
        telling = [column for column in self.columns if column.role in (Role.QUASI, Role.CONFIDENTIAL)]
        return tuple(column.name for column in telling if not column.kind.measured)

    def __getitem__(self, name: str) -> BoundColumn:
        return next(column for column in self.columns if column.name == name)

    def applied(self, method: str, steps: int | None) -> Policy:
        """Return the policy with what was found out or chosen written into it, so that it repeats this very run."""
        columns = {c.name: c.request.model_copy(update={"type": c.kind}) for c in self.columns if c.named}
        asked = self.request.method
        taken = {"name": method, "refine_steps": steps or 0, "several_starts": asked.starts or asked.several_starts}
        chosen = asked.model_copy(update=taken)
        return self.request.model_copy(update={"columns": columns, "method": chosen})


def bind(policy: Policy, schema: Schema, *, released: bool = False, index: Collection[str] = ()) -> BoundPolicy:
    """Check a policy against a table; raise with every problem, or return what each column is.

    In a table that is already released quasi-identifiers may hold labels, so their values are not held against them.
    Columns that are the `index` of a frame have a remedy of their own.
    """
    require_header(schema, policy.columns)
    problems = [*_unknown(policy, schema), *_unnamed(policy, schema, index), *_roles(policy), *_unit(policy, schema)]
    problems += [] if released else _weights(policy, schema)
    columns = tuple(_bound(column, policy) for column in schema)
    held = tuple(c for c in columns if c.named and not (released and c.role is Role.QUASI))
    problems += [problem for column in held for problem in _misfits(column)]
    problems += [problem for column in columns for problem in _runnable_name(column, policy)]
    rules, wrong = bind_rules(() if released else policy.rules, columns)
    if problems := [*problems, *wrong]:
        raise PolicyError(problems)
    broken = [problem for column in held for problem in _holdings(column, policy.source.form)]
    if broken:
        raise DataError(broken)
    return BoundPolicy(policy, columns, schema.rows, tuple(rules))


def _bound(column: Column, policy: Policy) -> BoundColumn:
    asked = policy.columns.get(column.name)
    if asked is None:
        role = Role.IDENTIFIER if policy.output.others == "drop" else Role.OTHER
        return BoundColumn(column, ColumnPolicy(role=role), column.kind, "", named=False)
    kind = asked.type or (Kind.ORDINAL if asked.order else column.kind)
    if kind is Kind.ORDINAL and not asked.order and column.order:
        asked = asked.model_copy(update={"order": column.order})  # as the source has it
    natural = natural_average(policy.method.name, quasi=asked.role is Role.QUASI) or AVERAGES[kind][0]
    return BoundColumn(column, asked, kind, asked.average or natural)


def _unknown(policy: Policy, schema: Schema) -> Iterator[Problem]:
    for name in policy.columns:
        if name not in schema:
            yield Problem(f"no column '{name}'{did_you_mean(name, schema.names)}", "edit [columns] in the policy")


def _unnamed(policy: Policy, schema: Schema, index: Collection[str]) -> Iterator[Problem]:
    if policy.output.others != "refuse":
        return
    for name in schema.names:
        if name not in policy.columns and name in index:
            yield Problem(
                f"the frame has an index that is more than a range, and the policy does not name it: '{name}'",
                f"drop it with reset_index(drop=True) or --others drop, or give [columns.{toml_key(name)}] a role",
            )
    yield from _without_role([name for name in schema.names if name not in {*policy.columns, *index}], policy, schema)


def _without_role(names: list[str], policy: Policy, schema: Schema) -> Iterator[Problem]:
    """Tell columns that may be what the policy means by another name one by one, and the others together."""
    unmatched = [name for name in policy.columns if name not in schema]
    meant = {name: did_you_mean(name, unmatched) for name in names}
    remedy = "or say --others release or --others drop"
    for name in (name for name in names if meant[name]):
        what = f"column '{name}' is in the table but not in the policy{meant[name]}"
        yield Problem(what, f"give [columns.{toml_key(name)}] a role, {remedy}")
    rest = [name for name in names if not meant[name]]
    if len(rest) == 1:
        fix = f"give [columns.{toml_key(rest[0])}] a role, {remedy}"
        yield Problem(f"column '{rest[0]}' is in the table but not in the policy", fix)
    elif rest:
        shown = ", ".join(f"'{name}'" for name in rest[:NAMED]) + ", …" * (len(rest) > NAMED)
        fix = f"give each a role, as in [columns.{toml_key(rest[0])}], {remedy}"
        yield Problem(f"{len(rest):,} columns are in the table but not in the policy: {shown}", fix)


def _unit(policy: Policy, schema: Schema) -> Iterator[Problem]:
    unit = policy.privacy.unit
    if unit is None:
        return
    if unit not in schema:
        yield Problem(
            f"privacy.unit: no column '{unit}'{did_you_mean(unit, schema.names)}", "name the column of the people"
        )
    elif (policy.columns[unit].role if unit in policy.columns else policy.output.others) not in (
        Role.IDENTIFIER,
        "drop",
    ):
        yield Problem(
            f"privacy.unit: '{unit}' names people, and would be released",
            f"give [columns.{toml_key(unit)}] the role identifier",
        )


def _weights(policy: Policy, schema: Schema) -> Iterator[Problem]:
    name = policy.report.sampling_weights
    if name is None:
        return
    column = schema.get(name)
    if column is None:
        what = f"report.sampling_weights: no column '{name}'{did_you_mean(name, schema.names)}"
        yield Problem(what, "name the column that says how many people a record stands for")
    elif column.storage not in (Storage.INTEGER, Storage.NUMBER):
        yield Problem(f"report.sampling_weights: '{name}' is not all numbers", "name a column of numbers")


def _roles(policy: Policy) -> Iterator[Problem]:
    if not any(column.role is Role.QUASI for column in policy.columns.values()):
        yield Problem(
            "no column has the role 'quasi-identifier'", "say which columns others may know: --quasi a,b or [columns]"
        )


def _misfits(bound: BoundColumn) -> Iterator[Problem]:
    """What the policy says of a column that does not go together."""
    where, asked = f"columns.{bound.name}", bound.request
    if asked.average and asked.average not in AVERAGES[bound.kind]:
        yield Problem(
            f"{where}: no {asked.average} of {bound.kind} values", f"use one of {', '.join(AVERAGES[bound.kind])}"
        )
    if asked.order and bound.kind is not Kind.ORDINAL:
        yield Problem(
            f"{where}: 'order' is for ordinal columns, this one is {bound.kind}",
            "leave out 'order', or type = \"ordinal\"",
        )
    if asked.distance == "ordered" and bound.kind is Kind.NOMINAL:
        yield Problem(
            f"{where}: the distance is ordered, and nominal values have no order",
            'leave out the distance, or type = "ordinal" with an order',
        )
    if asked.distance == "hierarchical" and not asked.hierarchy:
        yield Problem(f"{where}: the distance is hierarchical, and there is no hierarchy", "add one, or leave it out")
    if asked.order and len(set(asked.order)) < len(asked.order):
        yield Problem(f"{where}: 'order' names a category twice", "name each category once")
    if bound.kind is Kind.ORDINAL and not asked.order and bound.column.storage not in (Storage.INTEGER, Storage.NUMBER):
        yield Problem(f"{where}: an ordinal column of text needs an order", 'add order = ["lowest", ..., "highest"]')
    if asked.missing != "refuse" and not bound.kind.measured:
        yield Problem(
            f"{where}: 'missing' is for continuous and date columns", "leave it out: null is a value of this column"
        )
    if asked.missing != "separate" and asked.missing_rare != "blank":
        yield Problem(f"{where}: 'missing_rare' is for missing = \"separate\"", "leave it out, or say so")
    if asked.missing == "mean" and asked.average in ("generalize", "suppress"):
        how = "generalized truthfully" if asked.average == "generalize" else "released as it was"
        yield Problem(
            f"{where}: an imputed value cannot be {how}",
            'use missing = "separate" or missing = "drop"',
        )
    if asked.role is not Role.QUASI and (asked.average or asked.missing != "refuse"):
        yield Problem(f"{where}: 'average' and 'missing' are for quasi-identifiers", "leave them out")


def _runnable_name(bound: BoundColumn, policy: Policy) -> Iterator[Problem]:
    """Cells can be quoted, but a column with another name would be another column to whoever checks the release."""
    if policy.output.spreadsheet_safe and bound.role is not Role.IDENTIFIER and is_formula(bound.name):
        what = f"output.spreadsheet_safe: the name of the column '{bound.name}' starts like a formula"
        yield Problem(what, "rename the column in the source")


def _holdings(bound: BoundColumn, form: Form) -> Iterator[Problem]:
    """What a quasi-identifier or confidential column of the table holds against what was declared."""
    column, quasi = bound.column, bound.role is Role.QUASI
    yield from _nearly(bound, form)
    numeric = bound.kind.measured or (bound.kind is Kind.ORDINAL and not bound.request.order)
    numeric |= bound.role is Role.CONFIDENTIAL and column.storage is Storage.NUMBER
    if bound.role not in (Role.QUASI, Role.CONFIDENTIAL) or not numeric:
        return
    filled, name = column.rows - column.nulls, f"column '{column.name}'"
    if not filled and quasi:
        yield Problem(f"{name} has no values at all", "drop it: give it the role 'identifier'")
    elif not filled:
        return
    elif bound.kind is Kind.DATE and column.storage not in (Storage.DATE, Storage.TIMESTAMP) and not column.date_format:
        known = column.seems and column.seems.sort == "moment" and remedy(column.seems, form)
        how = known or 'write dates as 2024-12-31, or say how they are written: source.dates = "%d.%m.%Y" (--dates)'
        yield Problem(f"{name} is declared date, but not every value is one", f"{how}, or declare it nominal")
    elif bound.kind is not Kind.DATE and column.not_finite:
        yield Problem(
            f"{name} holds {plural(column.not_finite, 'value that is', 'values that are')} infinite or not a number",
            "correct or empty them; where nan means missing, say source.na (--na)",
        )
    elif bound.kind is Kind.CONTINUOUS and (text := filled - column.numbers):
        yield Problem(
            f"{name} is declared continuous, but {text} of {filled} values are not numbers",
            f"{_as_numbers(column, form)}, or declare it nominal",
        )
    averaged = quasi and bound.kind.measured and not bound.suppressed
    if column.nulls and filled and averaged and bound.request.missing == "refuse":
        what = f"{name} is {bound.kind} and {column.nulls} of its values are missing"
        yield Problem(what, f"choose columns.{toml_key(column.name)}.missing: separate, mean or drop")


def _as_numbers(column: Column, form: Form) -> str:
    return remedy(column.seems, form) if column.seems and column.seems.sort == "number" else "correct them"


def _nearly(bound: BoundColumn, form: Form) -> Iterator[Problem]:
    """A column of numbers or dates, but for a few words or other marks, is not to become one of words by itself."""
    column = bound.column
    if bound.role not in (Role.QUASI, Role.CONFIDENTIAL) or not bound.inferred or bound.kind is not Kind.NOMINAL:
        return
    if column.storage is Storage.TEXT and column.distinct > column.FEW:
        yield from seeming(column, form, toml_key(column.name))
