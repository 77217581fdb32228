"""The policy as pydantic models: the sections, keys, types and defaults of the TOML file.

Unknown keys are errors. All problems are reported together, each with its key and a fix.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import tomlkit
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    StrictBool,
    ValidationError,
    model_validator,
)

from kinfold.errors import PolicyError, check_arguments
from kinfold.policy import registry
from kinfold.policy.perturbation import Perturbation
from kinfold.policy.privacy import Integer, Number, Positive, Privacy, Share
from kinfold.policy.review import Review, apply_answers
from kinfold.policy.rules import parse_rule
from kinfold.policy.toml_values import KeyPath, override_keys, read_toml
from kinfold.policy.validation import (
    FilePath,
    PolicyFile,
    Section,
    check_date_formats,
    check_encoding,
    check_separator,
    check_thousands,
    describe_problems,
    find_foreign_values,
    suggest_name,
    wrap_in_list,
)
from kinfold.tables.column_names import is_pattern, match_patterns
from kinfold.tables.databases.address import SPARK_FORMATS
from kinfold.tables.resources import MAX_DRIVER_ROWS, Resources, check_memory, parse_memory
from kinfold.tables.schema import ROLE_SYNONYMS, Kind, Role, normalize_category
from kinfold.tables.source_form import ColumnForm, SourceForm

PUBLIC_FILES = ("release", "certificate", "report", "dictionary", "datapackage")
MAX_PART_FILES = 100_000  # the names of part files have five digits
MIN_PART_BYTES = 10**6  # the size of smaller files is mostly headers
MIN_SECRET_SEED = 10**11  # smaller seeds can be guessed


def _to_texts(value: Any) -> Any:
    # A category that is written as a number means the text of the number.
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    return [item if isinstance(item, list | dict) else _to_text(item) for item in value]


def _to_text(item: Any) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)


def _to_limit(value: Any) -> float | str:
    if isinstance(value, date):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError("it is neither a number nor a date")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("it is too large or not a number")
    return number


def _to_value_map(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {_to_text(old): new if isinstance(new, list | dict) else _to_text(new) for old, new in value.items()}


def _check_rule(text: str) -> str:
    parse_rule(text)  # raises RuleError
    return text


def _check_method(value: Any) -> Any:
    known = registry.list_method_names()
    if value in known:
        return value
    hint = suggest_name(str(value), known)
    raise ValueError(f"there is no method {value!r}{hint}; known methods are {', '.join(known)}")


def _to_codes(value: Any) -> Any:
    """Return codes for missing values as texts; a number has the text that all its notations share."""
    codes = _to_texts(wrap_in_list(value))
    if not isinstance(codes, list):
        return codes
    return [normalize_category(code) if isinstance(code, str) else code for code in codes]


def _check_parts(value: Any) -> Any:
    """Return a number of part files, or the size of one as text."""
    if not isinstance(value, str):
        return value
    if value.strip().isdecimal():
        return int(value)
    try:
        size = parse_memory(value)
    except ValueError:
        raise ValueError('write the number of part files, or the size of one: 16 or "256MB"') from None
    if size < MIN_PART_BYTES:
        raise ValueError(f"part files are not smaller than {MIN_PART_BYTES // 10**6} MB; set a larger size")
    return value


def _check_table_name(name: str) -> str:
    if not re.fullmatch("[a-z0-9_-]{1,60}", name) or name in PUBLIC_FILES:
        files = ", ".join(PUBLIC_FILES)
        raise ValueError(f"a table has a name of small letters, digits, - and _, which becomes a file; not {files}")
    return name


TomlScalar: TypeAlias = str | float | bool  # a category in TOML
Texts = Annotated[tuple[str, ...], BeforeValidator(_to_texts, json_schema_input_type=tuple[TomlScalar, ...])]
Limit = Annotated[float | str, PlainValidator(_to_limit, json_schema_input_type=float | str)]  # a date is an ISO text
ValueMap = Annotated[
    dict[str, str], BeforeValidator(_to_value_map, json_schema_input_type=dict[str, TomlScalar]), Field(min_length=1)
]
TableName = Annotated[str, AfterValidator(_check_table_name)]
ScalarOrList: TypeAlias = TomlScalar | tuple[TomlScalar, ...]
Codes = Annotated[tuple[str, ...], BeforeValidator(_to_codes, json_schema_input_type=ScalarOrList)]


class Method(Section):
    """[method]: how the release is made."""

    name: Annotated[str, BeforeValidator(_check_method)] = "auto"
    # None: the method auto and methods that search decide, others do not refine
    refine: Annotated[Number, Field(ge=0)] | Literal["auto", "exact"] | None = None
    refine_steps: Annotated[Integer, Field(ge=0)] | None = None
    suppression: Annotated[Integer, Field(ge=0)] | Annotated[Number, Field(ge=0, le=1)] = 0  # a count, or a share
    objective: Literal["granularity", "prec", "discernibility"] = "granularity"
    prove: Annotated[Number, Field(ge=0)] = 0.0  # seconds for a lower bound of the loss
    choices: Texts = ()  # mu-argus: columns that the holder generalizes once more, in order
    levels: dict[str, Annotated[Integer, Field(ge=0)]] | None = None  # lattice: release this node instead of searching
    extra_level: Annotated[Number, Field(gt=0, lt=1)] | None = None  # lattice: probability of one level more
    limit: dict[str, Annotated[Number, Field(ge=0, le=1)]] | None = None  # local-suppression: share of cells by column
    block: Annotated[Integer, Field(ge=0)] | None = None  # most records in one block; 0: never cut
    seed: Annotated[Integer, Field(ge=0)] = 0
    gamma: Annotated[Number, Field(ge=0)] | None = None  # v-mdav: how easily a group takes one more record
    several_starts: bool | None = None  # None: only for the method auto
    shift_days: Annotated[Integer, Field(ge=0, le=36_525)] = 30  # people together: random days of first events
    people: Literal["together"] | None = None  # together: classes are of people; all rows of a person are recoded alike

    @property
    def uses_several_starts(self) -> bool:
        """Whether the search for classes that keep every promise has several starts."""
        return self.name == registry.AUTO if self.several_starts is None else self.several_starts

    @property
    def auto_refines(self) -> bool:
        """Whether the method auto decides about refinement."""
        return self.name == registry.AUTO and self.refine_steps is None and self.refine is None

    @property
    def refinement_limits(self) -> tuple[int | None, float | None] | None:
        """Steps and seconds of refinement; (None, None): steps by the size of the table; None: no refinement."""
        if self.refine_steps is not None:
            return (self.refine_steps, None) if self.refine_steps else None
        if self.refine in ("auto", "exact") or self.auto_refines:
            return None, None
        return (None, float(self.refine)) if self.refine else None

    @property
    def search_limits(self) -> tuple[int | None, float | None] | None:
        """The same for a method that searches unless the policy says 0: (0, None) if it does; None: not said."""
        refuses = self.refine_steps == 0 or (self.refine_steps is None and self.refine == 0)
        return (0, None) if refuses else self.refinement_limits

    @model_validator(mode="after")
    def _check_keys_of_method(self) -> Self:
        optional = [key for key, field in Method.model_fields.items() if field.default is None]
        keys = [key for key in optional if getattr(self, key) is not None]
        foreign = registry.foreign_keys(self.name) if keys else {}  # imports the methods
        for key in keys:
            if key in foreign:
                names = " or ".join(f'name = "{name}"' for name in foreign[key])
                are = "are" if key.endswith("s") else "is"
                raise ValueError(f"{key} {are} for {names}, but the method is {self.name}")
        if self.extra_level is not None and (self.suppression or self.levels is not None):
            raise ValueError("extra_level cannot be combined with suppression or levels")
        if self.extra_level is not None and self.seed < MIN_SECRET_SEED:
            raise ValueError("extra_level needs a secret seed: set seed to a random number of 12 digits or more")
        return self


class HierarchySpec(Section):
    """The hierarchy of a column: exactly one of mask, intervals, dates, levels, file and tree."""

    FORMS: ClassVar = ("mask", "intervals", "dates", "levels", "file", "tree")

    mask: Annotated[Integer, Field(ge=1)] | None = None
    sparse: tuple[str, ...] = ()  # mask: prefixes shared by too few people; shown as zeros
    intervals: tuple[Number, ...] | None = None
    origin: Number = 0.0
    top: Number | None = None  # intervals: one open interval above
    bottom: Number | None = None  # intervals: one open interval below
    dates: tuple[str, ...] | None = None
    levels: tuple[Texts, ...] | None = None
    file: PolicyFile | None = None
    tree: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check_one_form(self) -> Self:
        if sum(getattr(self, form) is not None for form in self.FORMS) != 1:
            raise ValueError(f"a hierarchy has exactly one of {', '.join(self.FORMS)}")
        if self.sparse and self.mask is None:
            raise ValueError("sparse needs mask")
        if (self.top is not None or self.bottom is not None) and self.intervals is None:
            raise ValueError("top and bottom need intervals")
        return self


class ColumnPolicy(Section):
    """[columns.NAME]: role, type and treatment of one column."""

    role: Annotated[Role, BeforeValidator(lambda given: ROLE_SYNONYMS.get(str(given), given))]
    reason: str | None = None  # why the column has its role, such as why it is removed
    type: Kind | None = None
    of: Literal["person", "event"] | None = None  # people together: whose attribute it is; None: the rows decide
    na: Codes = ()  # values of this column that mean missing; numbers are compared as numbers
    unit: Annotated[
        tuple[Annotated[str, Field(pattern=r"\S")], ...],
        BeforeValidator(wrap_in_list, json_schema_input_type=str | tuple[str, ...]),
    ] = ()  # before or after each number of the source; released without it
    missing: Literal["refuse", "separate", "mean", "drop"] = "refuse"
    missing_rare: Literal["blank", "drop", "refuse"] = "blank"  # separate: records with a rare pattern
    order: Annotated[Texts, Field(min_length=1)] | None = None
    average: Literal["mean", "median", "convex-median", "mode", "shares", "generalize", "suppress"] | None = None
    hierarchy: HierarchySpec | None = None
    weight: Positive = 1.0
    t: Share | None = None
    l: Annotated[Number, Field(ge=1)] | None = None
    distance: Literal["ordered", "hierarchical", "equal"] | None = None
    top: Limit | None = None  # any role, before the method: larger values become this
    bottom: Limit | None = None
    round_to: Positive | None = None  # values become multiples of it
    map: ValueMap | None = None  # old values to new ones; order and hierarchy name the new ones
    calibrate: Annotated[Texts, BeforeValidator(wrap_in_list, json_schema_input_type=str | tuple[str, ...])] = ()
    household: StrictBool | None = None  # the same for all members of a household; None: as the data are
    tolerance: Share = 0.001  # calibrate: the largest deviation of a total, as a share of it
    perturb: Perturbation | None = None  # after them: at random, without a promise

    @property
    def removed(self) -> bool:
        """Whether the column is not released; sampling weights are released only by class."""
        return self.role in (Role.IDENTIFIER, Role.REMOVE) or (self.role is Role.WEIGHT and not self.regrouped)

    @property
    def regrouped(self) -> bool:
        """Whether sampling weights are released as the same weight for all records of a class."""
        return self.role is Role.WEIGHT and bool(self.average or self.calibrate or self.round_to)


class Output(Section):
    """[output]: the form of the release."""

    round: StrictBool = True
    order: Literal["sorted", "kept"] = "sorted"
    preserve: Literal["means", "variance"] = "means"
    weighted: StrictBool = False  # averages of classes count each record by its sampling weight
    others: Literal["refuse", "release", "drop"] = "refuse"
    suppressed: Literal["drop", "star"] = "drop"
    format: Literal["csv", "parquet"] = "csv"
    # a folder of so many part files, or of files of this size; None: one file
    parts: Annotated[Annotated[Integer, Field(ge=1, le=MAX_PART_FILES)] | str | None, BeforeValidator(_check_parts)] = (
        None
    )
    spreadsheet_safe: StrictBool = False  # puts an apostrophe before texts that look like formulas
    surrogate: StrictBool = False  # the column that identifies people is released, with other keys
    surrogate_secret: PolicyFile | None = None  # a file; keys are then the same in every release with it


class LinkedTable(Section):
    """[tables.NAME]: a further table with one row for each person, released as a file of its own with this name."""

    file: PolicyFile
    link: str | None = None  # its column that numbers people; None: it has the name of privacy.unit


class Report(Section):
    """[report]: what is measured in addition to the promises."""

    sampling_weights: str | None = None  # a column of the source: people per record
    measures: Literal["standard", "all"] = "standard"  # all: also those that need a fit or a search
    task: str | None = None  # an analysis before and after: "charge ~ age + sex"


class Rule(Section):
    """[[rules]]: what must hold inside every record; see `policy.rules`."""

    check: Annotated[str, AfterValidator(_check_rule)]
    repair: StrictBool = False  # repair records, so that the release breaks it no more often than the source


class Source(Section):
    """[source]: how to read the table."""

    na: Annotated[Texts, BeforeValidator(wrap_in_list, json_schema_input_type=ScalarOrList)] = ()
    decimal: Literal[".", ","] = "."
    thousands: Annotated[str, BeforeValidator(check_thousands)] = ""
    dates: Annotated[
        tuple[str, ...],
        AfterValidator(check_date_formats),
        BeforeValidator(wrap_in_list, json_schema_input_type=str | tuple[str, ...]),
    ] = ()
    encoding: Annotated[str | None, BeforeValidator(check_encoding)] = None
    separator: Annotated[str | None, BeforeValidator(check_separator)] = None
    sheet: str | Annotated[Integer, Field(ge=1)] | None = None
    header: Annotated[Integer, Field(ge=0)] | None = None  # the line of the column names; 0: none
    skip: Annotated[Integer, Field(ge=0)] = 0  # lines above the table to skip
    skip_totals: StrictBool = False  # leave out rows of totals, and rows in which only the first cell has a value
    parts: bool = False  # read a folder or a pattern of files as one table
    format: Literal[SPARK_FORMATS] | None = None  # type: ignore[valid-type]  # for Spark; None: by the ending

    @property
    def form(self) -> SourceForm:
        """The section as a value for the engine."""
        return SourceForm(**{key: value for key, value in self if key != "format"})

    @model_validator(mode="after")
    def _check_marks(self) -> Self:
        if self.decimal == self.thousands:
            raise ValueError("decimal and thousands are the same character")
        return self


class EngineSection(Section):
    """[engine]: the engine and its limits."""

    name: Literal["duckdb", "spark"] = "duckdb"
    memory: Annotated[str | None, BeforeValidator(check_memory)] = None  # limit of the whole run, such as "4GB"
    spill: FilePath | None = None  # folder for temporary data
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    master: str | None = None  # address of a Spark cluster
    driver_rows: Annotated[int, Field(ge=100)] = MAX_DRIVER_ROWS  # that Spark's driver may collect at a time

    @property
    def resources(self) -> Resources:
        """The limits as a value for the engine."""
        memory = parse_memory(self.memory) if self.memory else None
        return Resources(memory, self.spill, self.threads, driver_rows=self.driver_rows)


class Policy(Section):
    """A policy: roles, promises, method, output, report and edit rules."""

    source: Source = Source()
    engine: EngineSection = EngineSection()
    privacy: Privacy
    method: Method = Method()
    columns: dict[str, ColumnPolicy] = Field(default_factory=dict)
    output: Output = Output()
    tables: dict[TableName, LinkedTable] = Field(default_factory=dict)
    report: Report = Report()
    rules: tuple[Rule, ...] = ()
    review: Review = Review()

    @classmethod
    def of(cls, given: Any) -> Policy:
        """Return a policy from a Policy, a mapping, or the path of a TOML file."""
        if isinstance(given, Policy):
            return given
        if isinstance(given, Mapping):
            return cls.parse(given)
        if not isinstance(given, str | Path):
            what = f"the policy is of the type {type(given).__name__}"
            raise PolicyError(what, fix="give a Policy, a mapping, or the path of a TOML file")
        return cls.load(Path(given))

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a TOML file; paths of hierarchy files in it are relative to its folder."""
        return cls.parse(read_toml(Path(path)), where=Path(path))

    @classmethod
    def parse(
        cls, values: Mapping[str, Any], where: Path | None = None, options: Mapping[str, str] | None = None
    ) -> Policy:
        """Check every key and value; report all problems together, naming the option that set a key, if any.

        Keys that answers of `[review]` set are set first.
        """
        if foreign := find_foreign_values(values, options or {}):
            raise PolicyError(foreign)
        try:
            return cls.model_validate(apply_answers(values), context=where and where.parent.absolute())
        except ValidationError as error:
            raise PolicyError(describe_problems(error, cls, where, options or {})) from None

    @property
    def form(self) -> SourceForm:
        """How the table and its columns are written, as a value for the engine."""
        columns = {name: ColumnForm(column.na, column.unit) for name, column in self.columns.items()}
        return replace(self.source.form, columns=tuple((name, each) for name, each in columns.items() if any(each)))

    @property
    def surrogates(self) -> tuple[str, ...]:
        """The columns that are released with surrogates in the place of their values."""
        named = (self.privacy.unit, self.privacy.household) if self.output.surrogate else ()
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def expect_surrogates(self, names: Sequence[str]) -> Policy:
        """Return the policy for a release in which these columns have surrogates."""
        if not {self.privacy.unit, self.privacy.household} & {*names}:
            return self
        return self.model_copy(update={"output": self.output.model_copy(update={"surrogate": True})})

    @property
    def sampling_weights(self) -> str | None:
        """The column with the number of people that each record stands for, if there is one."""
        weights = (name for name, column in self.columns.items() if column.role is Role.WEIGHT)
        return self.report.sampling_weights or next(weights, None)

    @property
    def weighted_keys(self) -> list[str]:
        """The keys that need sampling weights."""
        privacy = self.privacy
        keys = {"output.weighted": self.output.weighted, "privacy.weighted": privacy.weighted}
        keys["privacy.individual_risk"] = privacy.individual_risk is not None
        return [key for key, wanted in keys.items() if wanted]

    @check_arguments
    def answer(self, answers: Mapping[str, Any], *, accept_proposal: bool = False) -> Policy:
        """Return the policy with answers to its questions; on request with the proposals of all others."""
        if not answers and not accept_proposal:
            return self
        keys: dict[KeyPath, Any] = {**self.review.resolve_answers(answers)}
        keys |= {("review", "accept_proposal"): True} if accept_proposal and self.review.questions else {}
        return self.parse(override_keys(self.model_dump(exclude_unset=True), keys))

    def for_columns(self, names: Sequence[str]) -> Policy:
        """Return the policy in which the columns of a table replace the patterns that match them."""
        if all(name in names or not is_pattern(name) for name in self.columns):
            return self
        matches = match_patterns(self.columns, names)
        columns = {name: column for key, column in self.columns.items() for name in matches.get(key, (key,))}
        return self.model_copy(update={"columns": columns})

    def resolve_paths(self, folder: Path) -> Policy:
        """Return the policy with absolute paths of its files, which are relative to a folder."""
        return self.parse(self.model_dump(exclude_unset=True), folder / "policy.toml")

    def toml(self) -> str:
        """Return the policy as TOML text that `load` reads."""
        values = self.model_dump(mode="json", exclude_none=True)
        brief = ("source", "engine", "review")  # without defaults, and only if something is set
        values |= {key: getattr(self, key).model_dump(mode="json", exclude_defaults=True) for key in brief}
        if "suppression" not in self.method.model_fields_set:  # a limit that is set also counts records without a value
            del values["method"]["suppression"]
        return tomlkit.dumps({key: value for key, value in values.items() if value or key not in (*brief, "tables")})
