"""Binding: check a policy against a table, and give every column its role, type and treatment.

Problems of the policy (unknown columns, roles, averages that do not fit) are raised together in one `PolicyError`.
Values that contradict the policy (text among numbers, missing or infinite values) are raised in one `DataError`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kinfold.errors import DataError, PolicyError, Problem, plural
from kinfold.policy.model import ColumnPolicy, Policy
from kinfold.policy.perturbation import PerturbedColumn, find_perturbation_problems
from kinfold.policy.privacy import find_promise_conflicts
from kinfold.policy.registry import get_default_average
from kinfold.policy.review import describe_review
from kinfold.policy.rules import BoundRule, bind_rules
from kinfold.policy.toml_values import format_toml_key
from kinfold.policy.validation import suggest_name
from kinfold.tables.column_names import require_header
from kinfold.tables.schema import SURROGATE, Column, Kind, Role, Schema, Storage
from kinfold.tables.source_form import SourceForm, describe_likely_type, suggest_source_keys
from kinfold.tables.text_values import is_formula

AVERAGES = {
    Kind.CONTINUOUS: ("mean", "median", "generalize", "suppress"),
    Kind.DATE: ("mean", "median", "generalize", "suppress"),
    Kind.ORDINAL: ("median", "convex-median", "mode", "generalize", "suppress"),
    Kind.NOMINAL: ("mode", "shares", "generalize", "suppress"),
}
MAX_COLUMNS_NAMED = 20  # in one message


@dataclass(frozen=True)
class BoundColumn:
    """A column of the table with its part of the policy; `kind` and `average` include the defaults."""

    column: Column
    request: ColumnPolicy
    kind: Kind
    average: str
    in_policy: bool = True  # False: `output.others` decides
    surrogate: bool = False  # an identifier that is released, with other keys
    event: bool = False  # an attribute of an event, which may differ between the rows of a person
    perturbed: PerturbedColumn | None = None  # how, once it is

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def role(self) -> Role:
        """The role of the column."""
        return self.request.role

    @property
    def released_role(self) -> str:
        """The role as a release states it."""
        return SURROGATE if self.surrogate else str(self.role)

    @property
    def removed(self) -> bool:
        """Whether the column is not released."""
        return self.request.removed and not self.surrogate

    @property
    def unprotected(self) -> bool:
        """Whether the column is released and nothing is promised about it."""
        return self.role in (Role.OTHER, Role.WEIGHT) and not self.removed

    @property
    def suppressed(self) -> bool:
        """Whether cells are released unchanged or not at all."""
        return self.average == "suppress"

    @property
    def inferred(self) -> bool:
        """Whether the type is inferred, not declared."""
        return self.request.type is None


@dataclass(frozen=True)
class BoundPolicy:
    """A policy that fits a table; columns are in the order of the table."""

    request: Policy
    columns: tuple[BoundColumn, ...]
    rows: int
    rules: tuple[BoundRule, ...] = ()

    def with_role(self, role: Role) -> tuple[BoundColumn, ...]:
        """Return the columns of a role; quasi-identifiers are those that form the classes, not those of events."""
        outside = role is Role.QUASI
        return tuple(column for column in self.columns if column.role is role and not (outside and column.event))

    @property
    def quasi(self) -> list[str]:
        """The names of the quasi-identifiers that form the classes."""
        return [column.name for column in self.with_role(Role.QUASI)]

    @property
    def released(self) -> tuple[BoundColumn, ...]:
        """The columns whose values are released; surrogates are none."""
        return tuple(column for column in self.columns if not column.removed and not column.surrogate)

    @property
    def surrogates(self) -> tuple[str, ...]:
        """The columns that are released with surrogates."""
        return tuple(column.name for column in self.columns if column.surrogate)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The quasi-identifiers and confidential columns whose values are compared as text."""
        protected = [column for column in self.columns if column.role in (Role.QUASI, Role.CONFIDENTIAL)]
        return tuple(column.name for column in protected if not column.kind.is_numeric)

    def __getitem__(self, name: str) -> BoundColumn:
        return next(column for column in self.columns if column.name == name)

    def describe_review(self) -> dict[str, Any]:
        """Return the questions of the policy, their answers, and how the policy differs from the proposal."""
        roles = {column.name: str(column.role) for column in self.columns}
        return describe_review(self.request.review, roles, self.request.privacy.unit)

    def record_choices(self, method: str, steps: int | None) -> Policy:
        """Return the policy with inferred types and the chosen method, so that it repeats this run exactly."""
        columns = {c.name: c.request.model_copy(update=self._record(c)) for c in self.columns if c.in_policy}
        keys = self.request.method
        starts = keys.uses_several_starts or keys.several_starts
        chosen = {"name": method, "refine_steps": steps or 0, "several_starts": starts}
        return self.request.model_copy(update={"columns": columns, "method": keys.model_copy(update=chosen)})

    def _record(self, column: BoundColumn) -> dict[str, Any]:
        """Return what the rows decided about a column."""
        by_person = self.request.method.people is not None and column.role in (Role.QUASI, Role.CONFIDENTIAL)
        return {"type": column.kind} | ({"of": "event" if column.event else "person"} if by_person else {})


def bind(policy: Policy, schema: Schema, *, released: bool = False, index: Collection[str] = ()) -> BoundPolicy:
    """Check a policy against a table and return the bound policy; raise with all problems together.

    `released`: the table is a release, whose quasi-identifiers may hold labels, so their values are not checked.
    `index` names the columns that are the index of a frame: they get a message of their own.
    """
    policy = policy.for_columns(schema.names)
    require_header(schema, policy.columns)
    unknown = [f"no column '{name}'{suggest_name(name, schema.names)}" for name in policy.columns if name not in schema]
    problems = [Problem(what, "edit [columns] in the policy") for what in unknown]
    problems += _find_unnamed_columns(policy, schema, index)
    if not any(column.role is Role.QUASI for column in policy.columns.values()):
        fix = "name the columns that others may know: --quasi a,b or [columns]"
        problems.append(Problem("no column has the role 'quasi-identifier'", fix))
    problems += [*_check_unit(policy, schema), *find_promise_conflicts(policy.privacy)]
    if not released:
        problems += [*_check_people(policy), *_check_household(policy, schema)]
        problems += [*_check_weights(policy, schema), *_check_regrouped(policy, schema)]
    columns = tuple(_bind_column(column, policy) for column in schema)
    checked = tuple(c for c in columns if c.in_policy and not (released and c.role is Role.QUASI))
    problems += [problem for column in checked for problem in _find_conflicts(column)]
    strict = [column for column in checked if not policy.review.asks_for_role(column.name)]
    problems += [problem for column in strict for problem in _find_foreign_keys(column)]
    released_names = [column.name for column in columns if not column.removed]
    for name in released_names if policy.output.spreadsheet_safe else ():
        if is_formula(name):  # a cell can be quoted, but not the name of a column
            what = f"output.spreadsheet_safe: the name of the column '{name}' starts like a formula"
            problems.append(Problem(what, "rename the column in the source"))
    problems += (
        [] if released else _check_task(policy.report.task, [c for c in columns if not c.removed and not c.surrogate])
    )
    rules, rule_problems = bind_rules(() if released else policy.rules, columns)
    rule_problems += [] if released else find_perturbation_problems(columns, policy, rules)
    if problems := [*problems, *rule_problems]:
        raise PolicyError(problems)
    if wrong_values := [problem for column in checked for problem in _check_values(column, policy.source.form)]:
        raise DataError(wrong_values)
    return BoundPolicy(policy, columns, schema.rows, tuple(rules))


def _check_task(task: str | None, columns: Sequence[BoundColumn]) -> Iterator[Problem]:
    """Yield problems of `report.task` before anything runs, because the task itself is fitted at the end."""
    if task is None:
        return
    known = {column.name: column for column in columns}
    target, sign, others = task.partition("~")
    kind, _, column = task.partition(":")
    names = [name.strip() for name in (target, *others.split("+"))] if sign else [column]
    if not sign and kind not in ("regression", "classification"):
        fix = "write COLUMN ~ COLUMN + COLUMN, regression:COLUMN or classification:COLUMN"
        yield Problem(f"report.task: the task '{task}' is not known", fix)
        return
    for name in (name for name in names if name not in known):
        yield Problem(f"report.task: no column '{name}' is released{suggest_name(name, [*known])}", "edit report.task")
    if sign and names[0] in known and not known[names[0]].kind.is_numeric:
        yield Problem(f"report.task: '{names[0]}' is {known[names[0]].kind}", "explain a column of numbers or dates")


def _bind_column(column: Column, policy: Policy) -> BoundColumn:
    request = policy.columns.get(column.name)
    if request is None:
        role = Role.REMOVE if policy.output.others == "drop" else Role.OTHER
        surrogate = column.name in policy.surrogates
        return BoundColumn(column, ColumnPolicy(role=role), column.kind, "", in_policy=False, surrogate=surrogate)
    measured = request.unit or request.role is Role.WEIGHT  # a quantity, however few values it has
    kind = request.type or (Kind.ORDINAL if request.order else Kind.CONTINUOUS if measured else column.kind)
    if kind is Kind.ORDINAL and not request.order and column.order:
        request = request.model_copy(update={"order": column.order})  # the order that the source declares
    default = get_default_average(policy.method.name, quasi=request.role is Role.QUASI) or AVERAGES[kind][0]
    surrogate = column.name in policy.surrogates
    return BoundColumn(column, request, kind, request.average or default, surrogate=surrogate)


def _find_unnamed_columns(policy: Policy, schema: Schema, index: Collection[str]) -> Iterator[Problem]:
    if policy.output.others != "refuse":
        return
    for name in schema.names:
        if name not in policy.columns and name in index:
            what = f"the frame has an index that is not a plain range, and the policy does not name it: '{name}'"
            drop = "drop it with reset_index(drop=True) or --others drop"
            yield Problem(what, f"{drop}, or give [columns.{format_toml_key(name)}] a role")
    names = [name for name in schema.names if name not in {*policy.columns, *index}]
    unmatched = [name for name in policy.columns if name not in schema]
    hints = {name: suggest_name(name, unmatched) for name in names}
    remedy = "or use --others release or --others drop"
    rest = [name for name in names if not hints[name]]
    # one by one: each may be a column under another name
    for name in [*(name for name in names if hints[name]), *(rest if len(rest) == 1 else ())]:
        what = f"column '{name}' is in the table but not in the policy{hints[name]}"
        yield Problem(what, f"give [columns.{format_toml_key(name)}] a role, {remedy}")
    if len(rest) > 1:
        listed = ", ".join(f"'{name}'" for name in rest[:MAX_COLUMNS_NAMED]) + ", …" * (len(rest) > MAX_COLUMNS_NAMED)
        fix = f"give each a role, as in [columns.{format_toml_key(rest[0])}], {remedy}"
        yield Problem(f"{len(rest):,} columns are in the table but not in the policy: {listed}", fix)


def _check_unit(policy: Policy, schema: Schema) -> Iterator[Problem]:
    unit, output = policy.privacy.unit, policy.output
    if output.surrogate_secret is not None and not output.surrogate:
        yield Problem("output.surrogate_secret is set, but output.surrogate is not", "set output.surrogate = true")
    if output.surrogate and unit is None and policy.privacy.household is None:
        yield Problem("output.surrogate: no column identifies people", "name it: privacy.unit or privacy.household")
    if output.surrogate and output.order == "kept":
        what = "output.surrogate: rows in the order of the source can show who has which surrogate"
        yield Problem(what, "leave out output.order (--keep-order)")
    if unit is None:
        return
    if unit not in schema:
        what = f"privacy.unit: no column '{unit}'{suggest_name(unit, schema.names)}"
        yield Problem(what, "name the column that identifies people")
    elif not (policy.columns[unit].removed if unit in policy.columns else policy.output.others == "drop"):
        what = f"privacy.unit: '{unit}' identifies people, and would be released"
        yield Problem(what, f"give [columns.{format_toml_key(unit)}] the role identifier")


def _check_people(policy: Policy) -> Iterator[Problem]:
    """Yield what people with several rows need; a release is checked without it."""
    if policy.privacy.events_known is not None and policy.method.people is None:
        yield Problem('privacy.events_known needs method.people = "together"', 'set method.people = "together"')
    for name in (key for key, each in policy.columns.items() if each.of is not None and policy.method.people is None):
        what = f"columns.{format_toml_key(name)}: 'of' needs method.people = \"together\""
        yield Problem(what, 'set method.people = "together"')
    if policy.method.people is not None and policy.privacy.unit is None:
        yield Problem("method.people: no column identifies people", "name it: privacy.unit")


def _check_household(policy: Policy, schema: Schema) -> Iterator[Problem]:
    name = policy.privacy.household
    if policy.privacy.household_k is not None and name is None:
        yield Problem("privacy.household_k is set, but privacy.household is not", "name the column of households")
    for column in (key for key, each in policy.columns.items() if each.household is not None):
        if name is None or policy.columns[column].role is not Role.QUASI:
            what = f"columns.{column}: 'household' is for quasi-identifiers of a policy with privacy.household"
            yield Problem(what, "leave it out")
    if name is None:
        return
    if policy.method.people is not None:
        what = (
            "method.people with privacy.household: rows of people and members of households cannot both stay together"
        )
        yield Problem(what, "leave out one of them")
    if name not in schema:
        what = f"privacy.household: no column '{name}'{suggest_name(name, schema.names)}"
        yield Problem(what, "name the column that identifies households")
    elif not (policy.columns[name].removed if name in policy.columns else policy.output.others == "drop"):
        what = f"privacy.household: '{name}' identifies households, and would be released"
        yield Problem(what, f"give [columns.{format_toml_key(name)}] the role identifier")


def _check_weights(policy: Policy, schema: Schema) -> Iterator[Problem]:
    name = policy.report.sampling_weights
    if name is not None and name not in schema:
        what = f"report.sampling_weights: no column '{name}'{suggest_name(name, schema.names)}"
        yield Problem(what, "name the column with the number of people that each record stands for")
    weights = {key: f"columns.{key}" for key, column in policy.columns.items() if column.role is Role.WEIGHT}
    weights |= {name: "report.sampling_weights"} if name is not None else {}
    for column in schema:
        if column.name in weights and column.storage not in (Storage.INTEGER, Storage.NUMBER):
            what = f"{weights[column.name]}: '{column.name}' has sampling weights, but is not all numbers"
            yield Problem(what, "name a column of numbers")


def _check_regrouped(policy: Policy, schema: Schema) -> Iterator[Problem]:
    """Yield problems of weighted averages, and of weights that are released by class."""
    for key in policy.weighted_keys if policy.sampling_weights is None else ():
        yield Problem(f"{key}: no column has the role weight", "name the column of the sampling weights")
    if policy.output.weighted and policy.output.preserve == "variance":
        yield Problem(
            "output.weighted: the variance of weighted averages is not preserved", "leave out output.preserve"
        )
    for name, column in policy.columns.items():
        where = f"columns.{format_toml_key(name)}"
        if policy.output.weighted and column.role is Role.QUASI and column.average == "shares":
            yield Problem(
                f"{where}.average: shares count records, not weights, and output.weighted is true", "use mode"
            )
        if column.calibrate and column.role is not Role.WEIGHT:
            yield Problem(
                f"{where}.calibrate: '{name}' is not a sampling weight", "name it in the column of the weights"
            )
        for each in column.calibrate if column.role is Role.WEIGHT else ():
            known = schema.get(each)
            if known is None:
                yield Problem(f"{where}.calibrate: no column '{each}'{suggest_name(each, schema.names)}", "correct it")
            elif each == name or policy.columns.get(each, column).removed:
                yield Problem(f"{where}.calibrate: '{each}' is not released, or is a weight", "name another column")
            elif known.kind is Kind.DATE:
                yield Problem(f"{where}.calibrate: '{each}' holds dates, which have no total", "name another column")


def _find_conflicts(bound: BoundColumn) -> Iterator[Problem]:
    """Yield settings of a column that contradict each other or its type."""
    where, request = f"columns.{bound.name}", bound.request
    if request.average and request.average not in AVERAGES[bound.kind]:
        known = ", ".join(AVERAGES[bound.kind])
        yield Problem(f"{where}: no {request.average} of {bound.kind} values", f"use one of {known}")
    if request.order and bound.kind is not Kind.ORDINAL:
        what = f"{where}: 'order' is for ordinal columns, but this one is {bound.kind}"
        yield Problem(what, "leave out 'order', or type = \"ordinal\"")
    if request.distance == "ordered" and bound.kind is Kind.NOMINAL:
        what = f"{where}: the distance is ordered, and nominal values have no order"
        yield Problem(what, 'leave out the distance, or type = "ordinal" with an order')
    if request.distance == "hierarchical" and not request.hierarchy:
        yield Problem(f"{where}: the distance is hierarchical, and there is no hierarchy", "add one, or leave it out")
    if request.order and len(set(request.order)) < len(request.order):
        yield Problem(f"{where}: 'order' names a category twice", "name each category once")
    numbers = bound.column.storage in (Storage.INTEGER, Storage.NUMBER)
    if bound.kind is Kind.ORDINAL and not request.order and not numbers:
        yield Problem(f"{where}: an ordinal column of text needs an order", 'add order = ["lowest", ..., "highest"]')
    if request.missing != "refuse" and not bound.kind.is_numeric:
        what = f"{where}: 'missing' is for continuous and date columns"
        yield Problem(what, "leave it out: null is a value of this column")
    if request.missing != "separate" and request.missing_rare != "blank":
        yield Problem(f"{where}: 'missing_rare' is for missing = \"separate\"", "leave it out, or set missing")
    if request.missing == "mean" and request.average in ("generalize", "suppress"):
        how = "generalized truthfully" if request.average == "generalize" else "released as it was"
        yield Problem(f"{where}: an imputed value cannot be {how}", 'use missing = "separate" or missing = "drop"')


def _find_foreign_keys(bound: BoundColumn) -> Iterator[Problem]:
    if bound.role is Role.WEIGHT and bound.request.average == "mean" and bound.request.missing == "refuse":
        return  # each record gets the mean weight of its class
    if bound.role is not Role.QUASI and (bound.request.average or bound.request.missing != "refuse"):
        yield Problem(f"columns.{bound.name}: 'average' and 'missing' are for quasi-identifiers", "leave them out")


def _check_values(bound: BoundColumn, form: SourceForm) -> Iterator[Problem]:
    """Yield values of a quasi-identifier or confidential column that contradict its declared type."""
    column, quasi = bound.column, bound.role is Role.QUASI
    yield from _check_almost_numeric(bound, form)
    numeric = bound.kind.is_numeric or (bound.kind is Kind.ORDINAL and not bound.request.order)
    numeric |= bound.role is Role.CONFIDENTIAL and column.storage is Storage.NUMBER
    if bound.role not in (Role.QUASI, Role.CONFIDENTIAL) or not numeric:
        return
    filled, name = column.rows - column.nulls, f"column '{column.name}'"
    if not filled and quasi:
        yield Problem(f"{name} has no values at all", "drop it: give it the role 'identifier'")
    elif not filled:
        return
    elif bound.kind is Kind.DATE and column.storage not in (Storage.DATE, Storage.TIMESTAMP) and not column.date_format:
        how = _suggest_keys(column, "moment", form) or (
            'write dates as 2024-12-31, or give their format: source.dates = "%d.%m.%Y" (--dates)'
        )
        yield Problem(f"{name} is declared date, but not every value is one", f"{how}, or declare it nominal")
    elif bound.kind is not Kind.DATE and column.not_finite:
        values = plural(column.not_finite, "value that is", "values that are")
        fix = "correct or empty them; if nan means missing, set source.na (--na)"
        yield Problem(f"{name} holds {values} infinite or not a number", fix)
    elif bound.kind is Kind.CONTINUOUS and (text := filled - column.numbers):
        what = f"{name} is declared continuous, but {text} of {filled} values are not numbers"
        yield Problem(what, f"{_suggest_keys(column, 'number', form) or 'correct them'}, or declare it nominal")
    averaged = quasi and bound.kind.is_numeric and not bound.suppressed and bound.request.of != "event"
    if column.nulls and filled and averaged and bound.request.missing == "refuse":
        what = f"{name} is {bound.kind} and {column.nulls} of its values are missing"
        yield Problem(what, f"choose columns.{format_toml_key(column.name)}.missing: separate, mean or drop")


def _suggest_keys(column: Column, sort: str, form: SourceForm) -> str:
    """Return the keys of [source] that read a column as numbers or dates; empty if none do."""
    likely = column.likely_type
    return suggest_source_keys(likely, form) if likely and likely.sort == sort else ""


def _check_almost_numeric(bound: BoundColumn, form: SourceForm) -> Iterator[Problem]:
    """Yield a problem for a column that is almost all numbers or dates: it must not become nominal silently."""
    column = bound.column
    if bound.role not in (Role.QUASI, Role.CONFIDENTIAL) or not bound.inferred or bound.kind is not Kind.NOMINAL:
        return
    likely = column.likely_type
    if likely is not None and column.storage is Storage.TEXT and column.distinct > column.MAX_CODE_VALUES:
        nominal = f'columns.{format_toml_key(column.name)}.type = "nominal"'
        yield Problem(describe_likely_type(column, form), f"{suggest_source_keys(likely, form)}, or set {nominal}")
