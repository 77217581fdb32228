"""The policy: what each column is, what is promised, and by which method. A TOML file or Python, nothing hidden.

Every key that is not known is an error, and every problem is reported at once, with its key and what to do.
"""

from __future__ import annotations

import math
import operator
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import tomlkit
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    ValidationError,
    model_validator,
)

from kinfold.errors import PolicyError, Problem, require_ordinary
from kinfold.request import methods, source_keys
from kinfold.request.policy_problems import did_you_mean as did_you_mean  # others import it from here
from kinfold.request.policy_problems import problems_of
from kinfold.request.rules.language import parse
from kinfold.rows.resources import Resources, bytes_of, enough
from kinfold.rows.schema import ROLE_SYNONYMS, Kind, Role
from kinfold.rows.source_form import Form

SECRET_SEED = 10**11  # seeds below are short enough to be guessed
LONG_KEY = re.compile(r"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""")


def _role(value: Any) -> Any:
    return ROLE_SYNONYMS.get(value, value) if isinstance(value, str) else value


def _texts(value: Any) -> Any:
    # Categories written as numbers in TOML or Python mean the text of the number.
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    return [item if isinstance(item, list | dict) else _text(item) for item in value]  # a list is no category


def _text(item: Any) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)


def _limit(value: Any) -> float | str:
    # TOML and Python have dates of their own
    if isinstance(value, date):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError("neither a number nor a date")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("too large for a number, or none")
    return number


def _names(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {_text(old): new if isinstance(new, list | dict) else _text(new) for old, new in value.items()}


def _check(text: str) -> str:
    parse(text)  # or raise
    return text


def _whole(value: Any) -> Any:
    # numpy's integers are whole numbers too; True is not one
    return operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else value


def _method(value: Any) -> Any:
    known = methods.names()
    if value in known:
        return value
    raise ValueError(f"no method {value!r}{did_you_mean(str(value), known)}; known are {', '.join(known)}")


Written: TypeAlias = str | float | bool  # a category as TOML may write it
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts, json_schema_input_type=tuple[Written, ...])]
Whole = Annotated[StrictInt, BeforeValidator(_whole)]
Number = Annotated[float, Field(strict=True)]  # "0.2" and true are none
Positive = Annotated[Number, Field(gt=0)]
Share = Annotated[Number, Field(gt=0, le=1)]
Limit = Annotated[float | str, PlainValidator(_limit, json_schema_input_type=float | str)]  # of a date an ISO text
Names = Annotated[
    dict[str, str], BeforeValidator(_names, json_schema_input_type=dict[str, Written]), Field(min_length=1)
]
Listed: TypeAlias = Written | tuple[Written, ...]  # one is taken for a list of one


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Privacy(_Section):
    """What is promised about every class of the release."""

    k: Annotated[Whole, Field(ge=2)]
    t: Share | None = None
    l: Annotated[Number, Field(ge=1)] | None = None
    l_kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Positive | None = None
    p: Annotated[Whole, Field(ge=1)] | None = None
    alpha: Share | None = None
    unit: str | None = None
    joint: StrictBool = False


class Method(_Section):
    """How the release is made."""

    name: Annotated[str, BeforeValidator(_method)] = "auto"
    refine: Annotated[Number, Field(ge=0)] | Literal["auto", "exact"] | None = None  # None: auto decides, others: 0
    refine_steps: Annotated[Whole, Field(ge=0)] | None = None
    suppression: Annotated[Whole, Field(ge=0)] | Annotated[Number, Field(ge=0, le=1)] = 0  # a count, or a share
    objective: Literal["granularity", "prec", "discernibility"] = "granularity"
    prove: Annotated[Number, Field(ge=0)] = 0.0  # seconds to find out how far a partition is from the best possible
    choices: Texts = ()  # mu-argus: attributes that the data holder generalizes once more, in this order
    levels: dict[str, Annotated[Whole, Field(ge=0)]] | None = None  # lattice: release this node, do not search
    extra_level: Annotated[Number, Field(gt=0, lt=1)] | None = (
        None  # lattice: probability of one level more than needed
    )
    limit: dict[str, Annotated[Number, Field(ge=0, le=1)]] | None = None  # local-suppression: share of cells, by column
    block: Annotated[Whole, Field(ge=0)] | None = None  # records that are partitioned together, at most; 0: all of them
    seed: Annotated[Whole, Field(ge=0)] = 0
    gamma: Annotated[Number, Field(ge=0)] | None = None  # v-mdav: how readily a group takes a further record
    normalized: StrictBool | None = None  # approximate: distances of attributes as shares of their joint entropy; ours
    several_starts: bool | None = None  # promises: also from other classes than the method's; None: where it is auto

    @property
    def starts(self) -> bool:
        """Whether classes that keep every promise are looked for from several starts."""
        return self.name == methods.AUTO if self.several_starts is None else self.several_starts

    @property
    def by_itself(self) -> bool:
        """Whether nothing is said of refinement, and `auto` decides."""
        return self.name == methods.AUTO and self.refine_steps is None and self.refine is None

    @property
    def limits(self) -> tuple[int | None, float | None] | None:
        """Steps and seconds of refinement, neither for as many steps as the size asks for; None for no refinement."""
        if self.refine_steps is not None:
            return (self.refine_steps, None) if self.refine_steps else None
        if self.refine in ("auto", "exact") or self.by_itself:
            return None, None
        return (None, float(self.refine)) if self.refine else None

    @model_validator(mode="after")
    def _keys_of_the_method(self) -> Self:
        for key, owners in methods.strangers(self.name).items():
            if self.model_dump()[key] is not None:
                known = " or ".join(f'name = "{name}"' for name in owners)
                are = "are" if key.endswith("s") else "is"
                raise ValueError(f"{key} {are} for {known}, and the method is {self.name}")
        if self.extra_level is not None and (self.suppression or self.levels is not None):
            raise ValueError("extra_level does not go with suppression or levels")
        if self.extra_level is not None and self.seed < SECRET_SEED:
            raise ValueError(
                "extra_level needs a seed that nobody can guess: set seed to a random number of 12 digits or more"
            )
        return self


class HierarchySpec(_Section):
    """How a column's hierarchy is made: exactly one of mask, intervals, dates, levels, file and tree."""

    FORMS: ClassVar = ("mask", "intervals", "dates", "levels", "file", "tree")

    mask: Annotated[Whole, Field(ge=1)] | None = None
    sparse: tuple[str, ...] = ()  # mask: beginnings that stand for too few people to be shown; zeros are shown instead
    intervals: tuple[Number, ...] | None = None
    origin: Number = 0.0
    top: Number | None = None  # intervals: one open interval from here up
    bottom: Number | None = None  # and one below here
    dates: tuple[str, ...] | None = None
    levels: tuple[Texts, ...] | None = None
    file: Path | None = None
    tree: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if sum(getattr(self, form) is not None for form in self.FORMS) != 1:
            raise ValueError(f"a hierarchy has exactly one of {', '.join(self.FORMS)}")
        if self.sparse and self.mask is None:
            raise ValueError("sparse are beginnings of values that a mask hides, and there is none")
        if (self.top is not None or self.bottom is not None) and self.intervals is None:
            raise ValueError("top and bottom are where the intervals at the ends open, and there are none")
        return self


class ColumnPolicy(_Section):
    """What one column is and how it is treated."""

    role: Annotated[Role, BeforeValidator(_role)]
    type: Kind | None = None
    missing: Literal["refuse", "separate", "mean", "drop"] = "refuse"
    missing_rare: Literal["blank", "drop", "refuse"] = "blank"  # separate: patterns that too few records share
    order: Texts | None = None
    average: Literal["mean", "median", "convex-median", "mode", "generalize", "suppress"] | None = None
    hierarchy: HierarchySpec | None = None
    weight: Positive = 1.0
    t: Share | None = None
    l: Annotated[Number, Field(ge=1)] | None = None
    distance: Literal["ordered", "hierarchical", "equal"] | None = None
    identifying: Literal["identifying", "more", "most"] = "identifying"  # mu-argus
    top: Limit | None = None  # before the method, in any role: what is above is shown as this
    bottom: Limit | None = None
    round_to: Positive | None = None  # multiples of it
    map: Names | None = None  # values and what they become; order and hierarchy are about these


class Output(_Section):
    """What the release looks like."""

    round: StrictBool = True
    order: Literal["sorted", "kept"] = "sorted"
    preserve: Literal["means", "variance"] = "means"
    others: Literal["refuse", "release", "drop"] = "refuse"
    suppressed: Literal["drop", "star"] = "drop"
    format: Literal["csv", "parquet"] = "csv"
    spreadsheet_safe: StrictBool = False  # an apostrophe before every text that a spreadsheet would run


class Report(_Section):
    """What is found out about the release, beside its promises."""

    sampling_weights: str | None = None  # a column of the source: how many people a record stands for
    measures: Literal["standard", "all"] = "standard"  # all: those as well that take a fit or a search of their own


class Rule(_Section):
    """What must hold inside every record; see `request.rules`."""

    check: Annotated[str, AfterValidator(_check)]
    repair: StrictBool = False  # the release breaks it no more than its source


class Source(_Section):
    """How the table is written, where reading it plainly would mistake it."""

    na: Annotated[Texts, BeforeValidator(source_keys.listed, json_schema_input_type=Listed)] = ()
    decimal: Literal[".", ","] = "."
    thousands: Annotated[str, BeforeValidator(source_keys.thousands)] = ""
    dates: Annotated[
        tuple[str, ...],
        AfterValidator(source_keys.dates),
        BeforeValidator(source_keys.listed, json_schema_input_type=str | tuple[str, ...]),
    ] = ()
    encoding: Annotated[str | None, BeforeValidator(source_keys.encoding)] = None
    separator: Annotated[str | None, BeforeValidator(source_keys.separator)] = None
    sheet: str | Annotated[Whole, Field(ge=1)] | None = None
    header: Annotated[Whole, Field(ge=0)] | None = None  # the line of the column names; 0: there is none
    skip: Annotated[Whole, Field(ge=0)] = 0  # lines above the table
    parts: bool = False  # a folder, or a pattern of files; otherwise a path is one file, whatever characters it has

    @property
    def form(self) -> Form:
        """What an engine is told of it."""
        return Form(**dict(self))

    @model_validator(mode="after")
    def _different_marks(self) -> Self:
        if self.decimal == self.thousands:
            raise ValueError("decimal and thousands are the same mark")
        if self.header and self.header <= self.skip:
            raise ValueError(f"the header is line {self.header}, and {self.skip} lines are left out")
        return self


class EngineSection(_Section):
    """Where rows live while they are worked on, and what may be used of the machine."""

    name: Literal["duckdb", "spark"] = "duckdb"
    memory: Annotated[str | None, BeforeValidator(enough)] = None  # of the whole run: "4GB"
    spill: Path | None = None  # a folder on a disk with room
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    master: str | None = None  # of a cluster

    @property
    def resources(self) -> Resources:
        """The limits as an engine takes them."""
        return Resources(bytes_of(self.memory) if self.memory else None, self.spill, self.threads)


class Policy(_Section):
    """Roles, promises, method, output, report, edit rules, and how it is all carried out."""

    source: Source = Source()
    engine: EngineSection = EngineSection()
    privacy: Privacy
    method: Method = Method()
    columns: dict[str, ColumnPolicy] = Field(default_factory=dict)
    output: Output = Output()
    report: Report = Report()
    rules: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, given: Any) -> Policy:
        """Take a policy as it is, from a mapping, or from a TOML file."""
        if isinstance(given, Policy):
            return given
        if isinstance(given, Mapping):
            return cls.parse(given)
        if not isinstance(given, str | Path):
            what = f"the policy is given as {type(given).__name__}"
            raise PolicyError(what, fix="give a Policy, a mapping, or the path of a TOML file")
        return cls.load(Path(given))

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a TOML file; paths of hierarchy files in it start from its folder."""
        return cls.parse(read_toml(Path(path)), where=Path(path))

    @classmethod
    def parse(
        cls, values: Mapping[str, Any], where: Path | None = None, options: Mapping[str, str] | None = None
    ) -> Policy:
        """Check every key and value, and report all problems together; a key that an option set is told by that."""
        try:
            policy = cls.model_validate(values)
        except ValidationError as error:
            raise PolicyError(problems_of(error, cls, where, options or {})) from None
        return policy.based_on(where.parent) if where else policy

    def based_on(self, folder: Path) -> Policy:
        """Return the policy with the paths of its hierarchy files starting from a folder, and good from anywhere."""
        columns = {
            name: column.model_copy(
                update={
                    "hierarchy": column.hierarchy.model_copy(update={"file": folder.absolute() / column.hierarchy.file})
                }
            )
            if column.hierarchy and column.hierarchy.file
            else column
            for name, column in self.columns.items()
        }
        return self.model_copy(update={"columns": columns})

    def toml(self) -> str:
        """Return the policy as a TOML text that `load` reads back."""
        told = self.model_dump(mode="json", exclude_none=True)
        for key in ("source", "engine"):  # said only where something is said
            told[key] = getattr(self, key).model_dump(mode="json", exclude_defaults=True)
        return tomlkit.dumps({key: value for key, value in told.items() if value or key not in ("source", "engine")})


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML; a key of very many parts is refused before the parser spends a minute on it."""
    if LONG_KEY.search(text):
        raise RecursionError
    return tomllib.loads(text)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, or say what is wrong with it and where."""
    try:
        require_ordinary(path, PolicyError(f"policy '{path}' is no ordinary file", fix="name a TOML file"))
        return parse_toml(path.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"policy '{path}' is not TOML: {error}", fix="mend that line") from None
    except RecursionError:
        raise PolicyError(f"policy '{path}' nests too deeply", fix="write fewer levels into one another") from None
    except UnicodeDecodeError:
        raise PolicyError(f"policy '{path}' is not UTF-8 text", fix="save it as UTF-8") from None
    except ValueError:
        raise PolicyError(f"policy '{path}' holds a number that is too long", fix="shorten it") from None
    except OSError as error:
        raise PolicyError(
            f"policy '{path}': {error.strerror}",
            fix="check the path, or write one: kinfold profile DATA --write-policy FILE",
        ) from None


def from_roles(
    *,
    quasi: Sequence[str] = (),
    confidential: Sequence[str] = (),
    identifier: Sequence[str] = (),
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the values of a policy from lists of columns; a column in two lists is an error."""
    lists = {Role.QUASI: quasi, Role.CONFIDENTIAL: confidential, Role.IDENTIFIER: identifier}
    columns: dict[str, dict[str, Any]] = {}
    problems = []
    for role, names in lists.items():
        for name in names:
            if name in columns:
                what = f"column '{name}' is given as {columns[name]['role']} and as {role}"
                problems.append(Problem(what, "give each column one role"))
            columns[name] = {"role": str(role)}
    if problems:
        raise PolicyError(problems)
    return {**settings, "columns": columns}


def toml_key(name: str) -> str:
    """Write a column's name as a key of a TOML file.

    >>> toml_key("age"), toml_key("date of birth")
    ('age', '"date of birth"')
    """
    return str(tomlkit.key(name).as_string())
