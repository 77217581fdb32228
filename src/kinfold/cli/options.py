"""Arguments and options of the commands, and the policy that they make.

Many options are keys of a policy, keys of its `[source]` section, or arguments of `measure()`. A decorator adds such a
group of options to a command, and passes their values as one parameter. A table is named by its path, or by the
address of a database; `--table` or `--query` selects rows of a database.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_args

import typer

from kinfold.errors import PolicyError
from kinfold.policy.registry import list_method_names
from kinfold.tables.databases.address import DatabaseAddress, parse_source, select_rows
from kinfold.tables.schema import Role

if TYPE_CHECKING:
    from kinfold.policy.model import Policy

    TableSource = Path | DatabaseAddress
else:
    TableSource = Path  # the help shows PATH

Command: TypeAlias = Callable[..., None]
OptionValues: TypeAlias = Mapping[str, Any]
Number = TypeVar("Number", int, float)

TABLE_PARAMETERS = ("data", "original", "released", "population")  # parameters of commands that name a table


def keep_text(text: str) -> str:
    """Return the name of a table unchanged: as a `Path`, an address would lose slashes."""
    return text


def make_table_argument(help_: str) -> Any:
    """Return an argument that names a table."""
    return typer.Argument(parser=keep_text, help=help_, show_default=False)


def _make_option(kind: Any, help_: str, *flags: str, panel: str | None = None) -> Any:
    return Annotated[kind | None, typer.Option(*flags, help=help_, show_default=False, rich_help_panel=panel)]


def _make_flag(flag: str, help_: str) -> Any:
    return Annotated[bool, typer.Option(flag, help=help_)]


Data = Annotated[
    TableSource, make_table_argument("CSV, Parquet, JSON, Excel, Stata, SPSS or SAS; or postgresql://… or sqlite:///…")
]
PolicyFile = _make_option(Path, "Policy file (TOML).", "--policy")
RequiredPolicyFile = Annotated[Path, typer.Option("--policy", help="Policy file (TOML).", show_default=False)]
Settings = _make_option(list[str], "Set a key of the policy, as in method.refine=5; repeatable.", "--set")
Answers = _make_option(list[str], "Answer to a question of the policy: unit=none", "--answer")
AcceptProposal = _make_flag("--accept-proposal", "Take the proposal of every open question; the certificate says so.")
DryRun = _make_flag("--dry-run", "Write nothing; print what a release would cost, from a sample.")
ShowValues = _make_flag("--show-values", "Name categories in error messages and in the distribution shift.")
Json = _make_flag("--json", "Print one JSON object and nothing else.")
IntoTable = _make_option(str, "Also write the release to this table of a database.")
RowsOnly = _make_flag("--rows-only", "Ignore promises about people with several rows.")
RequirePeople = _make_flag("--require-people", "Fail if a promise about people cannot be checked from the file.")
After = _make_option(list[Path], "Folder of an earlier release of the same people, which stays protected.", "--after")
With = _make_option(list[Path], "Folder of another release of the same people: what both disclose together.", "--with")
RiskMeasure = _make_option(str, "Risk measure to compare by; default: the first that applies.")
LossMeasure = _make_option(str, "Loss measure to compare by; default: the first that applies.")

SOURCE_PANEL, DATABASE_PANEL = "How the table is written", "Which rows of a database"
SOURCE_OPTIONS = {  # the keys of [source]
    "na": _make_option(list[str], "Texts that stand for a missing value: NA,n/a", panel=SOURCE_PANEL),
    "decimal": _make_option(str, "Decimal separator: , or .", panel=SOURCE_PANEL),
    "thousands": _make_option(str, "Thousands separator.", panel=SOURCE_PANEL),
    "dates": _make_option(list[str], "Date format: %d.%m.%Y", panel=SOURCE_PANEL),
    "encoding": _make_option(str, "utf-8, latin-1, cp1252, utf-16, ...", panel=SOURCE_PANEL),
    "separator": _make_option(str, "Field separator: ; or tab", panel=SOURCE_PANEL),
    "sheet": _make_option(str, "Sheet of a workbook: its name or its number.", panel=SOURCE_PANEL),
    "header": _make_option(int, "Line of the column names; 0 if there is none.", panel=SOURCE_PANEL),
    "skip": _make_option(int, "Number of lines above the table.", panel=SOURCE_PANEL),
    "skip_totals": _make_option(bool, "Leave out rows of totals and footers.", panel=SOURCE_PANEL),
    "format": _make_option(str, "For Spark: parquet, orc, delta, iceberg, csv, json, jsonl, table.", "--source-format"),
    "parts": _make_option(bool, "The table is a folder, or a pattern of files.", panel=SOURCE_PANEL),
}
DATABASE_OPTIONS = {
    "table": _make_option(str, "Table of a database: name, or schema.name.", panel=DATABASE_PANEL),
    "query": _make_option(str, "Query to a database: one SELECT.", panel=DATABASE_PANEL),
}
ROLE_OPTIONS = {  # by role: a list of columns
    "quasi-identifier": _make_option(str, "Quasi-identifiers, which others may know: a,b,c", "--quasi"),
    "confidential": _make_option(str, "Confidential columns, to protect from inference."),
    "identifier": _make_option(str, "Identifiers, which are removed."),
}
KEY_OPTIONS = {  # by key of a policy
    "privacy.k": _make_option(int, "Least number of records in a class (k-anonymity).", "-k"),
    "privacy.t": _make_option(float, "Largest distance of a class from the table (t-closeness).", "-t"),
    "privacy.l": _make_option(float, "Least number of confidential values in a class (l-diversity).", "-l"),
    "method.name": _make_option(str, ", ".join(list_method_names()) + ".", "--method"),
    "method.seed": _make_option(int, "Seed of the search.", "--seed"),
    "output.others": _make_option(str, "What to do with columns without a role: refuse, release or drop.", "--others"),
    "output.order": _make_flag("--keep-order", "Do not sort the released rows."),
    "output.format": _make_option(str, "csv or parquet.", "--format"),
    "output.parts": _make_option(
        str, "Write a folder of so many part files, or of this size: 16, 256MB.", "--part-files"
    ),
    "engine.name": _make_option(str, "Engine that holds the rows: duckdb or spark.", "--engine"),
    "engine.master": _make_option(str, "Spark cluster: local[*], spark://host:7077.", "--master"),
    "engine.memory": _make_option(str, "Memory limit of the run: 4GB.", "--memory"),
    "engine.spill": _make_option(Path, "Folder for data that does not fit into memory.", "--spill"),
    "engine.threads": _make_option(int, "Threads of the engine.", "--threads"),
}
MEASURE_OPTIONS = {  # by argument of measure(); without a value, its own default counts
    "measures": _make_option(str, "standard or all; default: as the policy says."),
    "columns": _make_option(str, "Columns of the loss measures: quasi (the default) or all."),
    "weights": _make_option(str, "Weights of the weighted risk: k (the default), or a CSV matrix."),
    "population": Annotated[
        TableSource | None,
        typer.Option(parser=keep_text, help="Table of the population that was sampled.", show_default=False),
    ],
    "sampling_weights": _make_option(str, "Column: number of people that a record represents."),
    "threshold": _make_option(float, "Report the share of records with a risk above this."),
    "linkage_subsets": _make_flag("--linkage-subsets", "Also attack with the most identifying quasi-identifiers."),
    "linkage_untouched": _make_flag("--linkage-untouched", "Also attack with the columns released unchanged."),
    "task": _make_option(str, "'COLUMN ~ COLUMN + COLUMN', regression:COLUMN or classification:COLUMN."),
}


def add_options(**groups: OptionValues) -> Callable[[Command], Command]:
    """Add groups of options to a command, and the options of `[source]`.

    A group has the annotation of each option by its key. The command receives the values of a group by key, as the
    parameter of the group's name, and `source` by dotted keys. Names of tables become paths or addresses. `--table` and
    `--query` apply to the first table.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def wrapper(**arguments: Any) -> None:
            source = {f"source.{key}": _convert_source_option(key, arguments.pop(key)) for key in SOURCE_OPTIONS}
            table, query = (arguments.pop(key) for key in DATABASE_OPTIONS)
            names = [key for key in TABLE_PARAMETERS if arguments.get(key) is not None]
            tables = {key: parse_source(arguments[key]) for key in names}
            for first in names[:1]:  # the table of `template` is optional
                tables[first] = select_rows(tables[first], table, query)
            arguments |= tables
            for name, group in groups.items():
                arguments[name] = {key: arguments.pop(_name_parameter(key)) for key in group}
            command(**arguments, source=source)

        parameters = inspect.signature(command, eval_str=True).parameters.values()
        kept = [parameter for parameter in parameters if parameter.name not in (*groups, "source")]
        added = [_make_parameter(*option) for group in groups.values() for option in group.items()]
        added += [_make_parameter(*option) for option in (SOURCE_OPTIONS | DATABASE_OPTIONS).items()]
        wrapper.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in (*kept, *added)}
        return wrapper

    return decorate


def _make_parameter(key: str, annotation: Any) -> inspect.Parameter:
    default = False if get_args(annotation)[0] is bool else None
    return inspect.Parameter(
        _name_parameter(key), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _name_parameter(key: str) -> str:
    return key.replace(".", "_").replace("-", "_")


def _convert_source_option(key: str, value: Any) -> Any:
    if key == "na" and value is not None:
        return [text for each in value for text in each.split(",")]
    if key == "sheet" and value is not None and value.isdigit():
        return int(value)
    return value if key == "header" else value or None


def build_policy(
    file: Path | None, roles: Mapping[str, str | None], keys: OptionValues, settings: Sequence[str] | None
) -> Policy:
    """Return the policy of a command: `roles` are comma-separated lists, `keys` dotted, `settings` are key=value."""
    from kinfold.policy.schema import add_roles
    from kinfold.policy.toml_values import override_keys, read_toml

    lists = {Role(role): filter(None, map(str.strip, (names or "").split(","))) for role, names in roles.items()}
    values = add_roles(read_toml(file) if file else {}, lists)
    given = {key: value for key, value in keys.items() if value is not None}
    override_keys(values, {tuple(key.split(".")): value for key, value in given.items()})
    flags = {key: _find_flag(key) for key in given}
    return _apply_settings(values, settings, file, flags)


def _find_flag(key: str) -> str:
    declared = get_args(KEY_OPTIONS[key])[1].param_decls if key in KEY_OPTIONS else ()
    return declared[0] if declared else f"--{key.rpartition('.')[2].replace('_', '-')}"


def build_recipient_policy(
    data: TableSource, file: Path | None, keys: OptionValues, settings: Sequence[str] | None
) -> Policy | None:
    """Return what a recipient requires in addition to the certificate: a file, or the certificate with other keys."""
    from kinfold.release.certificate import read_policy_values
    from kinfold.release.inspection import find_public_folder, read_certificate

    if file is not None:
        return build_policy(file, {}, keys, settings)
    if given := [key for key, value in keys.items() if value is not None]:
        what = f"{_find_flag(given[0])} is for a table; the certificate says how a release is written"
        raise PolicyError(what, fix="leave it out")
    assert isinstance(data, Path)  # noqa: S101  rows of a database have no certificate and need --policy
    if not settings:
        return None
    return _apply_settings(read_policy_values(read_certificate(find_public_folder(data))), settings, None, {})


def _apply_settings(
    values: dict[str, Any], settings: Sequence[str] | None, file: Path | None, flags: Mapping[str, str]
) -> Policy:
    """Set the keys of `--set`; a problem names the option that set the key."""
    from kinfold.policy.model import Policy
    from kinfold.policy.review import find_answered
    from kinfold.policy.toml_values import override_keys, parse_key, parse_value

    options = dict(flags)
    for setting in settings or ():
        key, equals, text = setting.partition("=")
        if not equals:
            raise PolicyError(f"--set {setting} has no value", fix="write --set section.key=value")
        path = parse_key(key.strip())
        if (question := find_answered(values, path)) is not None:
            what = f"--set {key.strip()}: the answer of the question '{question}' in the policy sets this key"
            raise PolicyError(what, fix=f"use --answer {question}=ANSWER, or remove the answer from the policy")
        override_keys(values, {path: parse_value(text.strip())})
        options[key.strip()] = f"--set {key.strip()}"
    values.setdefault("privacy", {})
    return Policy.parse(values, file, options)


def parse_answers(answers: Sequence[str] | None) -> dict[str, str]:
    """Return the answers of `--answer NAME=VALUE` by name."""
    pairs = [answer.partition("=") for answer in answers or ()]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise PolicyError(f"--answer {wrong[0]} has no value", fix=f"write --answer {wrong[0]}=ANSWER")
    return {name.strip(): value.strip() for name, _, value in pairs}


def parse_numbers(text: str | None, kind: type[Number], option: str) -> list[Number]:
    """Parse a comma-separated list of numbers."""
    try:
        return [kind(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise PolicyError(f"{option} {text} is not a list of numbers", fix=f"write {option} 3,5,10") from None
