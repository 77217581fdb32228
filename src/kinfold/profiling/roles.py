"""Roles: the part that each column of a table could play, judged by its values first and by its name second.

1. every column by itself: what it looks like, what its name hints at, the role that follows from both
2. sampling weights: by their name, or numbers with fractions that repeat as another column does
3. the table: a handful of quasi-identifiers, those that others know best; a few confidential columns, for nobody can
   be kept from learning everything at once; what is left is released where it has few values, else left out
4. the unit: numbers that repeat name people, or households, with several rows

The result is a start to correct, and is meant to run: in doubt it removes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kinfold.profiling.shapes import FEW, Shape, nearly_unique
from kinfold.rows.appearance import Appearance
from kinfold.rows.name_hints import IDENTIFYING, KNOWN, SENSITIVE, Hint
from kinfold.rows.schema import Column, Role, Storage

MOST_QUASI = 8
ENOUGH_QUASI = 3  # known by their names or the way they are written: then codes that nobody can place are left alone
UNPLACED_QUASI = 6  # quasi-identifiers, where codes that nobody can place have to be taken
MOST_CONFIDENTIAL = 5
ONE = 1.01  # values that come with one of another column, on average, where a few are mistakes
OLDER = 1.5  # ages of somebody who is seen more than once
LARGEST = 1e150  # of which a double still holds the square
SHARED = 5  # records that must share a weight if it is to be released

Variety = Callable[[str, str], float]  # how many values of the second column come with one of the first, on average

TOLD = {
    Shape.NOTHING: "it holds no value",
    Shape.CONSTANT: "one value tells nobody apart",
    Shape.MOMENT: "dates",
    Shape.TEXT: "free text may say anything about anybody",
    Shape.OWN_NUMBER: "almost every record has a value of its own",
    Shape.SHARED_NUMBER: "given out like numbers, some rows each",
    Shape.CODE: "few values, a code",
    Shape.MANY_CODES: "many values that are codes, not quantities",
    Shape.POST_CODE: "written like postal codes",
    Shape.DIAGNOSIS: "written like diagnoses of ICD-10",
    Shape.SCALE: "values that have an order",
    Shape.AGE: "small whole numbers, like ages",
    Shape.YEAR: "whole numbers, like years",
    Shape.AMOUNT: "a number with many values",
}
PLACED = (Shape.MOMENT, Shape.AGE, Shape.YEAR, Shape.POST_CODE)  # others may know these, whatever they are called


@dataclass(frozen=True)
class Seen:
    """A column, what its values look like, what its name hints at, and the role that it could play."""

    column: Column
    look: Appearance
    hints: frozenset[Hint]
    shape: Shape
    role: Role = Role.OTHER
    reason: str = ""
    weight: bool = False  # says how many people a record stands for

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def known(self) -> Hint | None:
        """What others may know of people that the name hints at."""
        return next((hint for hint in KNOWN if hint in self.hints), None)

    @property
    def sensitive(self) -> Hint | None:
        """What must not be learnt of people that the name hints at."""
        return next((hint for hint in SENSITIVE if hint in self.hints), None)

    def as_(self, role: Role, *reasons: str) -> Seen:
        """Return the column in a role, and why."""
        return replace(self, role=role, reason="; ".join(reasons))


def assigned(columns: Sequence[Seen], variety: Variety) -> list[Seen]:
    """Return the columns in the roles that they could play together."""
    leaning = [_leaning(seen) for seen in columns]
    weighed = [_weighed(seen, leaning, variety) for seen in leaning]
    quasi = _quasi(weighed)
    placed = [_placed(seen, quasi) for seen in weighed]
    surplus = _surplus(placed)
    return [_too_many(seen) if seen.name in surplus else seen for seen in placed]


def _leaning(seen: Seen) -> Seen:
    """Return a column in the role that it would play by itself."""
    told = TOLD[seen.shape]
    if seen.shape in (Shape.NOTHING, Shape.CONSTANT):
        return seen.as_(Role.OTHER, told)
    if seen.shape in (Shape.TEXT, Shape.OWN_NUMBER, Shape.SHARED_NUMBER):
        return seen.as_(Role.IDENTIFIER, told)
    if max(abs(seen.look.low), abs(seen.look.high)) > LARGEST:
        return seen.as_(Role.IDENTIFIER, told, "removed, for some are too large to be averaged")
    if _names_people(seen):
        return seen.as_(Role.IDENTIFIER, "its name says that it identifies")
    if seen.sensitive or seen.shape is Shape.DIAGNOSIS:
        by_name = [f"its name hints at {seen.sensitive.told}"] if seen.sensitive else []
        return seen.as_(Role.CONFIDENTIAL, told, *by_name, "not to be learnt about anybody")
    if seen.known:
        return seen.as_(Role.QUASI, told, f"its name hints at {seen.known.told}", "somebody else may know it")
    if seen.shape is Shape.AMOUNT:
        return seen.as_(Role.CONFIDENTIAL, told, "not to be learnt about anybody")
    return seen.as_(Role.QUASI, told, "somebody else may know it")


def _names_people(seen: Seen) -> bool:
    """Whether a name says that a column identifies, and nothing else that it could be: a region's name is a region."""
    says = any(hint in seen.hints for hint in IDENTIFYING)
    return says and (nearly_unique(seen.look) or not (seen.known or seen.sensitive)) and seen.shape is not Shape.MOMENT


def _weighed(seen: Seen, columns: Sequence[Seen], variety: Variety) -> Seen:
    """Return a column of sampling weights in its role: never averaged, and released only where many share each."""
    numbers = seen.column.storage in (Storage.INTEGER, Storage.NUMBER) and seen.look.filled and seen.look.low > 0
    if not numbers or seen.shape in (Shape.OWN_NUMBER, Shape.SHARED_NUMBER):
        return seen
    if not (_is_called_weight(seen) or _repeats_like_weights(seen, columns, variety)):
        return seen
    weight = replace(seen, weight=True)
    told = "sampling weights, for the risk in the population"
    if seen.look.least >= SHARED:
        return weight.as_(
            Role.OTHER, told, "analysts need them, but they may show the stratum: identifier removes them"
        )
    return weight.as_(Role.IDENTIFIER, told, "removed, for some are held by few records")


def _is_called_weight(seen: Seen) -> bool:
    """Whether a name speaks of weights, and the values are not those of a body."""
    if Hint.WEIGHT not in seen.hints or Hint.BODY in seen.hints:
        return False
    look = seen.look
    body = look.high <= 300 and look.distinct > FEW and (seen.column.decimals or 0) <= 1 and look.mean <= 120
    return Hint.SAMPLING in seen.hints or Hint.HOUSEHOLD in seen.hints or not body


def _repeats_like_weights(seen: Seen, columns: Sequence[Seen], variety: Variety) -> bool:
    """Whether a few numbers with fractions, far apart, come with the values of another column: of a stratum, say."""
    look = seen.look
    if seen.shape is not Shape.AMOUNT or look.low < 1 or look.whole == look.filled or look.rows_each < 10:
        return False
    places = (look.high - look.low) * 10.0 ** (seen.column.decimals or 12)
    if look.distinct > 0.05 * places or seen.sensitive or seen.known:
        return False
    strata = [other for other in columns if other.look.rows_each >= 2 and other.look.distinct >= look.distinct]
    groups = (Shape.CODE, Shape.MANY_CODES, Shape.POST_CODE, Shape.SHARED_NUMBER)
    return any(other.shape in groups and variety(other.name, seen.name) <= ONE for other in strata)


def _quasi(columns: Sequence[Seen]) -> list[str]:
    """Choose the quasi-identifiers: what others know best, one of a sort before a second, and not too many."""
    candidates = [seen for seen in columns if seen.role is Role.QUASI]
    placed = [seen for seen in candidates if seen.known or seen.shape in PLACED]
    chosen = [seen for _, seen in sorted(_ranked(placed), key=lambda pair: pair[0])][:MOST_QUASI]
    if len(chosen) < ENOUGH_QUASI:
        rest = sorted((s for s in candidates if s not in placed), key=lambda s: s.shape is Shape.MANY_CODES)
        chosen += rest[: UNPLACED_QUASI - len(chosen)]
    return [seen.name for seen in chosen or _instead(columns)[:MOST_QUASI]]


def _ranked(columns: Sequence[Seen]) -> list[tuple[tuple[int, int], Seen]]:
    """Return columns with their rank: how many of the same sort came before, and how well others know that sort."""
    natural = {Shape.AGE: Hint.AGE, Shape.YEAR: Hint.BIRTH, Shape.MOMENT: Hint.BIRTH, Shape.POST_CODE: Hint.PLACE}
    before: dict[Hint, int] = {}
    ranked = []
    for seen in columns:
        sort = seen.known or natural[seen.shape]
        ranked.append(((before.get(sort, 0), KNOWN.index(sort)), seen))
        before[sort] = before.get(sort, 0) + 1
    return ranked


def _instead(columns: Sequence[Seen]) -> list[Seen]:
    """Return what can be a quasi-identifier where no column is one: numbers, else whatever is not removed."""
    numbers = [seen for seen in columns if seen.role is Role.CONFIDENTIAL and not seen.sensitive]
    kept = [seen for seen in columns if seen.role is Role.CONFIDENTIAL]
    return numbers or kept or [seen for seen in columns if seen.role is Role.OTHER and not seen.weight]


def _placed(seen: Seen, quasi: Sequence[str]) -> Seen:
    """Return a column as a quasi-identifier where it was chosen, and in another role where it was not."""
    told = TOLD[seen.shape]
    if seen.name in quasi:
        return seen if seen.role is Role.QUASI else seen.as_(Role.QUASI, told, "there is none that others know better")
    if seen.role is not Role.QUASI:
        return seen
    if seen.shape in (Shape.CODE, Shape.SCALE) and seen.look.distinct <= FEW:
        return seen.as_(Role.OTHER, told, "hardly known to others: if it is, quasi-identifier")
    return seen.as_(Role.IDENTIFIER, told, "removed, for it would single people out: quasi-identifier keeps it")


def _surplus(columns: Sequence[Seen]) -> set[str]:
    """Choose the confidential columns that are not protected with the others; those go first whose names hint at it."""
    found = [seen for seen in columns if seen.role is Role.CONFIDENTIAL]
    return {seen.name for seen in sorted(found, key=lambda seen: not seen.sensitive)[MOST_CONFIDENTIAL:]}


def _too_many(seen: Seen) -> Seen:
    several = f"removed, for more than {MOST_CONFIDENTIAL} confidential columns are hard to protect together"
    return seen.as_(Role.IDENTIFIER, TOLD[seen.shape], several)


@dataclass(frozen=True)
class Unit:
    """A column whose values have several rows each: people, or households of people who have one row each."""

    column: str
    people: bool


def unit_of(columns: Sequence[Seen], variety: Variety, k: int) -> Unit | None:
    """Find the column that says which rows belong together; the finest, where there are several."""
    given = [seen for seen in columns if seen.shape is Shape.SHARED_NUMBER or Hint.NUMBER in seen.hints]
    found = [
        s for s in given if s.role is Role.IDENTIFIER and s.look.rows_each >= 1.05 and s.look.distinct >= 2 * k
    ]  # fmt: skip
    if not found:
        return None
    finest = max(found, key=lambda seen: seen.look.distinct)
    household = Hint.HOUSEHOLD in finest.hints or any(_differs(finest, seen, variety) for seen in columns)
    return Unit(finest.name, not household)


def _differs(unit: Seen, seen: Seen, variety: Variety) -> bool:
    """Whether rows of a unit differ in what stays the same of a person: the sex, the date of birth, nearly the age."""
    if seen.look.distinct < 2 or not ({Hint.SEX, Hint.BIRTH} & seen.hints or seen.shape is Shape.AGE):
        return False
    return variety(unit.name, seen.name) > (OLDER if seen.shape is Shape.AGE else ONE)


def weight_of(columns: Sequence[Seen]) -> str | None:
    """Choose the weights that say how many people a record stands for."""
    weights = [seen for seen in columns if seen.weight]
    rank = sorted(weights, key=lambda seen: (Hint.HOUSEHOLD in seen.hints, Hint.SAMPLING not in seen.hints))
    return rank[0].name if rank else None
