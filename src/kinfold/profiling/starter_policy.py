"""Starter policies: the proposals of a profile as a TOML file with reasons as comments, to correct and to run.

Long tables of labels are written to files of their own, in a folder next to the policy, if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import tomlkit
from tomlkit.items import Table

from kinfold.errors import plural
from kinfold.hierarchies.grouping import Rows
from kinfold.profiling.hierarchy_proposals import ProposedHierarchy
from kinfold.profiling.profile import ColumnProfile, Profile
from kinfold.profiling.questions import OpenQuestion
from kinfold.profiling.source_detection import select_source_keys, write_codes
from kinfold.tables.relations import Relation
from kinfold.tables.schema import Kind, Role

HEADER = """\
A starter policy, proposed from the table. Check every role: identifier (of people, removed), quasi-identifier
(others may know it), confidential (protected from inference), weight (of a sample), other (released as it is),
remove (left out for the reason given). Answer the questions in [review], if there are any. A hierarchy says how a
column is generalized: by method = "lattice" and similar methods, or with average = "generalize" in the column."""
T_COMMENT = "a number: the distribution in each class differs from the whole table by at most this, 0 to 1"
L_COMMENT = "a category: each class has at least this many different values"
IF_CONFIDENTIAL = "if it is confidential; "
HOUSEHOLD_COMMENT = "several rows share each value, like the people of a household: its members show the same"
PolicyWriter: TypeAlias = Callable[[str], str]  # returns a policy, given the folder of its hierarchies

OTHERS_KEY = "output.others"
K_KEY = "privacy.k"
MAX_FILE_NAME = 60  # characters


@dataclass(frozen=True)
class PolicyTemplate:
    """The header, the sections and further column keys of a policy."""

    head: str = HEADER
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"method": {"name": "auto"}})
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def write_starter_policy(
    profile: Profile, k: int | None = None, folder: str | None = None, form: PolicyTemplate | None = None
) -> str:
    """Return a policy as TOML for the profiled table; long tables of labels go to `folder`, if given."""
    form = form or PolicyTemplate()
    document = tomlkit.document()
    for line in form.head.splitlines():
        document.add(tomlkit.comment(line) if line else tomlkit.nl())
    document.add(tomlkit.nl())
    if source := select_source_keys(profile.source):
        document.add("source", tomlkit.item(source))
    privacy = {"k": k or profile.k, **form.sections.get("privacy", {})}
    profile, privacy = _count_rows(profile, privacy)
    document.add("privacy", _write_privacy(profile, privacy))
    for name, keys in _merge_output(form.sections, profile).items():
        if name != "privacy":
            document.add(name, write_section(keys))
    if any(column.undecided for column in profile.columns):
        document["output"]["others"].comment("the columns that a question below names, and any other without a section")
    if profile.sampling_weights is not None:
        report = tomlkit.table()
        comment = "how many people a record represents: for the risk in the population"
        _add_key(report, "sampling_weights", profile.sampling_weights, comment)
        document.add("report", report)
    if profile.questions:
        document.add("review", _write_review(profile.questions))
    columns = tomlkit.table(is_super_table=True)
    files = {} if folder is None else {name: f"{folder}/{file}" for name, file, _ in list_hierarchy_files(profile)}
    for column in profile.columns:
        if not column.undecided:
            columns.add(column.name, _write_column(column, files.get(column.name), form.columns.get(column.name, {})))
    document.add("columns", columns)
    return "\n".join([tomlkit.dumps(document), *_write_rules(profile), _write_proposal(profile)])


def _count_rows(profile: Profile, privacy: Mapping[str, Any]) -> tuple[Profile, dict[str, Any]]:
    """Return the profile and [privacy] with a k of rows that k people have at most, if a question asks for it."""
    k = privacy["k"]
    if not any(question.sets == K_KEY for question in profile.questions):
        return profile, dict(privacy)
    questions = tuple(_count_by(question, k, profile.k) for question in profile.questions)
    return replace(profile, questions=questions), {**privacy, "k": k * profile.rows_of_person}


def _count_by(question: OpenQuestion, k: int, profiled: int) -> OpenQuestion:
    """Return a question for k with answers for another k than that of the profile; another question as it is."""
    if question.sets != K_KEY:
        return question
    answers = tuple(str(int(answer) // profiled * k) for answer in question.answers)
    return replace(question, proposed=answers[0], answers=answers)


def _merge_output(sections: Mapping[str, Mapping[str, Any]], profile: Profile) -> dict[str, Mapping[str, Any]]:
    """Return the sections, with `output.others` if a question decides about columns that the policy does not name."""
    proposed = [question.proposed for question in profile.questions if question.sets == OTHERS_KEY]
    others = {"others": proposed[0]} if proposed else {}
    return {**sections, "output": {**sections.get("output", {}), **others}} if others else dict(sections)


def write_section(keys: Mapping[str, Any]) -> Table:
    """Return a section of a policy; mappings in it become inline tables."""
    table = tomlkit.table()
    for key, value in keys.items():
        table.add(key, write_inline(value) if isinstance(value, Mapping) else value)
    return table


def write_inline(keys: Mapping[str, Any]) -> Any:
    """Return keys in one line."""
    inline = tomlkit.inline_table()
    inline.update(keys)
    return inline


def list_hierarchy_files(profile: Profile) -> Iterator[tuple[str, str, Rows]]:
    """Yield each column with a long table of labels, its file name and its rows."""
    used: set[str] = set()
    for column in profile.columns:
        if column.hierarchy and column.hierarchy.needs_file:
            file = re.sub(r"[^\w-]+", "_", column.name)[:MAX_FILE_NAME]
            while file.casefold() in used:
                file += "_"
            used.add(file.casefold())
            yield column.name, f"{file}.csv", column.hierarchy.rows


def _write_privacy(profile: Profile, keys: Mapping[str, Any]) -> Table:
    table = write_section(keys)
    table["k"].comment("at least this many records share each combination of quasi-identifiers")
    if profile.unit is not None and profile.unit.people:
        _add_key(table, "unit", profile.unit.column, "a person has several rows: k counts people, not rows")
    elif profile.unit is not None:
        if _keeps_households(profile, profile.unit.column):
            _add_key(table, "household", profile.unit.column, HOUSEHOLD_COMMENT)
        else:
            name = tomlkit.item(profile.unit.column).as_string()
            table.add(tomlkit.comment(f"household = {name}  # {HOUSEHOLD_COMMENT}; it needs every number"))
    return table


def _keeps_households(profile: Profile, household: str) -> bool:
    """Whether every member has a household, and no quasi-identifier has missing numbers, which would part members."""
    columns = {column.name: column for column in profile.columns}
    protected = [column for column in columns.values() if column.role == Role.QUASI]
    parted = any(column.missing and column.kind in (Kind.CONTINUOUS, Kind.DATE) for column in protected)
    known = columns[household]
    return not known.missing and not parted and known.role in (Role.IDENTIFIER, Role.REMOVE)


def _write_review(questions: Sequence[OpenQuestion]) -> Table:
    review = tomlkit.table(is_super_table=True)
    for each in questions:
        table = tomlkit.table()
        for key in ("question", "seen", "sets", "proposed"):
            value = getattr(each, key)
            table.add(key, list(value) if isinstance(value, tuple) else value)
        table.add("answers", list(each.answers))
        _add_key(table, "answer", "", "write one of the answers, or delete this section to keep the proposal")
        review.add(each.name, table)
    return review


def _write_rules(profile: Profile) -> Iterator[str]:
    """Yield the proposed edit rules as comments."""
    if profile.rules:
        yield "# Edit rules that hold in a sample of the table. Remove the # signs of a rule, and the release keeps it."
    undecided = {column.name for column in profile.columns if column.undecided}
    for rule in profile.rules:
        needed = [f"'{name}'" for name in rule.columns if name in undecided]
        note = f"; only if {' and '.join(needed)} {'is' if len(needed) == 1 else 'are'} kept" if needed else ""
        yield f"# [[rules]] # holds in {_describe_support(rule)}{note}"
        yield f"# check = {tomlkit.item(rule.check).as_string()}"
        yield "# repair = true\n"


def _describe_support(rule: Relation) -> str:
    """Return in how many of the sampled records to which a rule applies it holds.

    >>> _describe_support(Relation("order", ("a", "b"), "a <= b", 2000, 0.9995, 950.0))
    '1,999 of 2,000 records; by chance in about 1,050'
    """
    chance = max(rule.rows - rule.expected, 0)
    return f"{round(rule.share * rule.rows):,} of {rule.rows:,} records; by chance in about {chance:,.0f}"


def _write_proposal(profile: Profile) -> str:
    """Return the section that says what was proposed, so that the audit can list what the steward changed."""
    others = [question.proposed for question in profile.questions if question.sets == OTHERS_KEY]
    undecided = str(Role.OTHER if "release" in others else Role.REMOVE)
    table = tomlkit.table()
    table.add(tomlkit.comment("what was proposed: the audit lists the differences; leave it as it is"))
    if profile.unit is not None and profile.unit.people:
        table.add("unit", profile.unit.column)
    table.add("questions", [question.name for question in profile.questions])
    roles = {column.name: undecided if column.undecided else column.role for column in profile.columns}
    table.add("roles", write_section(roles))
    document = tomlkit.document()
    document.add("review", tomlkit.table(is_super_table=True).add("proposal", table))
    return tomlkit.dumps(document)


def _write_column(column: ColumnProfile, file: str | None, further: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    table.add(tomlkit.comment(f"{column.reason}; {plural(column.distinct, 'value')}, {column.missing:,} missing"))
    table.add("role", column.role)
    if column.role == Role.REMOVE:
        table.add("reason", column.reason)
    protectable = bool((column.depends_on or column.role == Role.WEIGHT) and (column.t or column.l))  # by an answer
    if column.role in (Role.IDENTIFIER, Role.REMOVE, Role.WEIGHT) and not protectable:
        return table
    table.add("type", column.kind)
    if column.na:
        _add_key(table, "na", write_codes(column.na), "codes for missing values of this column")
    if column.unit:
        _add_key(table, "unit", list(column.unit), "before or after its numbers; released without it")
    for key, value in further.items():
        table.add(key, value)
    if column.order:
        _add_key(table, "order", list(column.order), "from the lowest to the highest")
    if column.role == Role.QUASI and column.missing and column.kind in (Kind.CONTINUOUS, Kind.DATE):
        _add_key(table, "missing", "separate", "separate (own classes), mean (imputed), drop (the record), refuse")
    if column.average is not None:
        _add_key(table, "average", column.average, "a label that is true of every record of a class")
    if column.t is not None:
        _add_key(table, "t", column.t, f"{IF_CONFIDENTIAL if protectable else ''}{T_COMMENT}")
    if column.l is not None:
        _add_key(table, "l", column.l, f"{IF_CONFIDENTIAL if protectable else ''}{L_COMMENT}")
    if column.hierarchy:
        table.add("hierarchy", _write_hierarchy(column.hierarchy, file))
    return table


def _add_key(table: Table, key: str, value: Any, comment: str) -> None:
    table.add(key, value)
    table[key].comment(comment)


def _write_hierarchy(hierarchy: ProposedHierarchy, file: str | None) -> Any:
    if file is None and hierarchy.rows:
        levels = tomlkit.table()
        levels.add(tomlkit.comment(f"{hierarchy.description}: one row per value, ever coarser"))
        rows = tomlkit.array().multiline(multiline=True)
        for row in hierarchy.rows:
            rows.append(list(row))
        levels.add("levels", rows)
        return levels
    keys = write_inline({"file": file} if file is not None else hierarchy.keys)
    keys.comment(hierarchy.description)
    return keys
