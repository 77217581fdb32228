"""Edit rules: parse the text of a rule into a tree, and bind the tree to the columns of a table.

    rule           disjunction [implies rule]
    disjunction    conjunction {or conjunction}
    conjunction    negation {and negation}
    negation       not negation | relation
    relation       sum {(= | == | != | <> | < | <= | > | >=) sum}      a < b <= c is a < b and b <= c
                   sum [not] in (sum, ...) | sum is [not] missing
                   column -> column | column <-> column
    sum            product {(+ | -) product}
    product        value {* value}
    value          number | "text" or 'text' | 2024-12-31 | true | false | column | `any column` | - value | ( rule )

Keywords may be in upper or lower case. A quote inside a text is doubled.
Both sides of a comparison are read as one type:

    number    columns of numbers, numbers, sums and products; also the days between two dates
    date      columns of dates, dates, quoted ISO dates; a date plus or minus days
    rank      ordinal columns with an order, and quoted categories of it
    text      all other columns, and quoted texts: equal or not, without an order

A column of codes is a number when it is compared with a number, and text when it is compared with text.

`town -> area` holds if a record has the area that most records of its town have in the source; `<->` is both ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kinfold.errors import Problem
from kinfold.policy.validation import suggest_name
from kinfold.tables.schema import SECONDS_PER_DAY, Kind, Storage

if TYPE_CHECKING:
    from kinfold.policy.binding import BoundColumn
    from kinfold.policy.model import Rule

MAX_RULE_LENGTH = 10_000  # characters
MAX_RULE_DEPTH = 40  # of nesting, and terms of a sum; keeps the recursion small

TOKEN_PATTERN = re.compile(
    r"""(?P<space>\s+)
    | (?P<date>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?(?![\w-]))
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<text>"(?:[^"]|"")*"|'(?:[^']|'')*')
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><->|->|<=|>=|==|!=|<>|[-+*=<>(),])""",
    re.VERBOSE,
)
KEYWORDS = ("and", "or", "not", "implies", "in", "is", "missing", "true", "false")
RELATIONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class RuleError(ValueError):
    """A syntax error in a rule; the message shows the position."""

    def __init__(self, what: str, text: str, at: int) -> None:
        rest = text[at : at + 20].strip()
        super().__init__(f"{what} {f'at character {at + 1}, before {rest!r}' if rest else 'at its end'}")


@dataclass(frozen=True)
class RulePart:
    """A node of the tree of a rule, with its position in the text.

    Kinds: number, text, date, truth and column (with a value); + - * negative; = != < <= > >= ->; missing; not and or.
    """

    kind: str
    position: int
    parts: tuple[RulePart, ...] = ()
    value: float | str | bool = ""
    value_type: str = ""  # number, date, rank, text or truth, once it is bound
    images: Mapping[Any, Any] = field(default_factory=dict, compare=False)  # of a function, once the source is read

    def walk(self) -> Iterator[RulePart]:
        """Yield this node and all nodes below."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in the rule, each once, in their order."""
        return tuple(dict.fromkeys(str(node.value) for node in self.walk() if node.kind == "column"))


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int


def parse_rule(text: str) -> RulePart:
    """Return the tree of a rule.

    >>> parse_rule('age < 16 implies marital = "single"').kind
    'or'
    >>> parse_rule("discharge >= ")
    Traceback (most recent call last):
        ...
    kinfold.policy.rules.RuleError: a value is missing at its end
    """
    if len(text) > MAX_RULE_LENGTH:
        raise RuleError(f"the rule has more than {MAX_RULE_LENGTH} characters", text, MAX_RULE_LENGTH)
    return _Parser(text, [*_tokenize(text)]).parse()


def _tokenize(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = TOKEN_PATTERN.match(text, at)
        if match is None:
            what = "a quote is not closed" if text[at] in "\"'`" else "unknown character"
            raise RuleError(what, text, at)
        kind = str(match.lastgroup)
        word = match.group().lower()
        if kind == "word" and word in KEYWORDS:
            yield _Token("word", word, at)
        elif kind != "space":
            yield _Token("column" if kind == "word" else kind, match.group(), at)
        at = match.end()


class _Parser:
    """A recursive descent parser: one method for each line of the grammar."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text, self._tokens, self._next, self._depth = text, tokens, 0, 0

    def parse(self) -> RulePart:
        """Return the tree of the whole text."""
        node = self._rule()
        if self._next < len(self._tokens):
            raise self._error("'and', 'or' or 'implies' is missing")
        return node

    def _rule(self) -> RulePart:
        node = self._disjunction()
        if (token := self._accept("implies")) is not None:
            node = RulePart("or", token.position, (RulePart("not", node.position, (node,)), self._nest(self._rule)))
        return node

    def _disjunction(self) -> RulePart:
        return _join("or", self._list("or", self._conjunction))

    def _conjunction(self) -> RulePart:
        return _join("and", self._list("and", self._negation))

    def _list(self, mark: str, part: Callable[[], RulePart]) -> list[RulePart]:
        parts = [part()]
        while self._accept(mark) is not None:
            parts.append(part())
        return parts

    def _negation(self) -> RulePart:
        if (token := self._accept("not")) is None:
            return self._relation()
        return RulePart("not", token.position, (self._nest(self._negation),))

    def _relation(self) -> RulePart:
        left = self._sum()
        if (token := self._accept("is")) is not None:
            negated = self._accept("not") is not None
            self._expect("missing")
            return _negate(RulePart("missing", token.position, (left,)), negated)
        if (token := self._accept("in")) is not None:
            return self._membership(left, token, negated=False)
        if self._peek("not", "in"):
            self._next += 1
            return self._membership(left, self._expect("in"), negated=True)
        if (token := self._accept("->", "<->")) is not None:
            right = self._sum()
            directions = [(left, right), (right, left)][: 1 if token.text == "->" else 2]
            return _join("and", [RulePart("->", token.position, sides) for sides in directions])
        comparisons = []
        while (token := self._accept(*RELATIONS)) is not None:
            right = self._sum()
            comparisons.append(RulePart(RELATIONS[token.text], token.position, (left, right)))
            left = right
        return _join("and", comparisons) if comparisons else left

    def _membership(self, left: RulePart, token: _Token, *, negated: bool) -> RulePart:
        self._expect("(")
        items = self._list(",", self._sum)
        self._expect(")")
        return _negate(_join("or", [RulePart("=", token.position, (left, item)) for item in items]), negated)

    def _sum(self) -> RulePart:
        return self._chain(lambda: self._chain(self._value, "*"), "+", "-")  # a sum of products

    def _chain(self, part: Callable[[], RulePart], *signs: str) -> RulePart:
        node = part()
        for _ in range(MAX_RULE_DEPTH):
            if (token := self._accept(*signs)) is None:
                return node
            node = RulePart(token.text, token.position, (node, part()))
        raise self._error("the expression is too long")

    def _value(self) -> RulePart:
        if (token := self._accept("-")) is not None:
            return RulePart("negative", token.position, (self._nest(self._value),))
        if (token := self._accept("(")) is not None:
            node = self._nest(self._rule)
            self._expect(")")
            return replace(node, position=token.position)
        if (token := self._accept("true", "false")) is not None:
            return RulePart("truth", token.position, value=token.text == "true")
        if self._next == len(self._tokens) or self._tokens[self._next].kind in ("word", "sign"):
            raise self._error("a value is missing")
        token = self._tokens[self._next]
        self._next += 1
        return _parse_literal(token)

    def _nest(self, part: Callable[[], RulePart]) -> RulePart:
        if self._depth == MAX_RULE_DEPTH:
            raise self._error("the nesting is too deep")
        self._depth += 1
        node = part()
        self._depth -= 1
        return node

    def _accept(self, *texts: str) -> _Token | None:
        """Return and consume the next token if it is one of these words or signs."""
        if not any(self._peek(text) for text in texts):
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def _peek(self, *texts: str) -> bool:
        ahead = self._tokens[self._next : self._next + len(texts)]
        return [t.text for t in ahead] == list(texts) and all(t.kind in ("word", "sign") for t in ahead)

    def _expect(self, text: str) -> _Token:
        token = self._accept(text)
        if token is None:
            raise self._error(f"'{text}' is missing")
        return token

    def _error(self, what: str) -> RuleError:
        at = self._tokens[self._next].position if self._next < len(self._tokens) else len(self._text)
        return RuleError(what, self._text, at)


def _join(word: str, parts: Sequence[RulePart]) -> RulePart:
    return parts[0] if len(parts) == 1 else RulePart(word, parts[0].position, tuple(parts))


def _negate(node: RulePart, negated: bool) -> RulePart:
    return RulePart("not", node.position, (node,)) if negated else node


def _parse_literal(token: _Token) -> RulePart:
    quote = token.text[0]
    if token.kind == "number":
        return RulePart("number", token.position, value=float(token.text))
    if token.kind in ("text", "quoted"):
        inside = token.text[1:-1].replace(quote * 2, quote)
        return RulePart("text" if token.kind == "text" else "column", token.position, value=inside)
    return RulePart(token.kind, token.position, value=token.text)


VALUE_TYPES = ("number", "date", "rank", "text")
ARITHMETIC_TYPES = {
    "+": {("number", "number"): "number", ("date", "number"): "date", ("number", "date"): "date"},
    "-": {("number", "number"): "number", ("date", "date"): "number", ("date", "number"): "date"},
    "*": {("number", "number"): "number"},
}


@dataclass(frozen=True)
class BoundRule:
    """A rule that fits a table: its text, whether records are repaired, and its typed tree."""

    text: str
    repair: bool
    tree: RulePart

    @property
    def column_types(self) -> tuple[tuple[str, str], ...]:
        """The columns of the rule, each with the type that it is read as."""
        return tuple(dict.fromkeys((str(n.value), n.value_type) for n in self.tree.walk() if n.kind == "column"))


def bind_rules(rules: Sequence[Rule], columns: Sequence[BoundColumn]) -> tuple[list[BoundRule], list[Problem]]:
    """Return the rules bound to a table, and the problems of those that do not fit it."""
    known = {column.name: column for column in columns}
    bound, problems = [], []
    for number, rule in enumerate(rules, 1):
        tree = parse_rule(rule.check)
        found_problems = [*_find_unknown_columns(tree, known)]
        if not found_problems:
            try:
                bound.append(BoundRule(rule.check, rule.repair, _type_condition(tree, known)))
            except _MismatchError as error:
                found_problems.append(Problem(*error.args))
        problems += [replace(problem, what=f"rules, {number}: {problem.what}") for problem in found_problems]
    return bound, problems


class _MismatchError(Exception):
    """A comparison of values that have no common type."""


def _find_unknown_columns(tree: RulePart, known: Mapping[str, BoundColumn]) -> Iterator[Problem]:
    if not tree.columns:
        yield Problem("it names no column", "correct the rule")
    for name in tree.columns:
        if name not in known:
            yield Problem(f"no column '{name}'{suggest_name(name, [*known])}", "correct the rule")
        elif known[name].request.removed:
            what = f"column '{name}' is removed, so that no release can be checked by this rule"
            yield Problem(what, "leave the rule out")


def _type_condition(node: RulePart, known: Mapping[str, BoundColumn]) -> RulePart:
    """Return a condition with the types of its parts."""
    if node.kind in ("and", "or", "not"):
        return replace(node, parts=tuple(_type_condition(part, known) for part in node.parts), value_type="truth")
    if node.kind == "missing":
        column = node.parts[0]
        if column.kind != "column":
            raise _MismatchError("'is missing' needs a column", "write: age is missing")
        typed = replace(column, value_type=_column_types(known[str(column.value)])[0])
        return replace(node, parts=(typed,), value_type="truth")
    if node.kind == "->":
        if any(part.kind != "column" for part in node.parts):
            raise _MismatchError("'->' needs a column on each side", "write: town -> area")
        typed_parts = (replace(p, value_type=_column_types(known[str(p.value)])[0]) for p in node.parts)
        return replace(node, parts=tuple(typed_parts), value_type="truth")
    if node.kind not in ("=", "!=", "<", "<=", ">", ">="):
        raise _MismatchError(f"{_describe_part(node)} is neither true nor false", "compare it: age < 16")
    return replace(node, parts=_type_comparison(node, known), value_type="truth")


def _type_comparison(node: RulePart, known: Mapping[str, BoundColumn]) -> tuple[RulePart, ...]:
    """Return both sides of a comparison, read as their first common type."""
    sides = [_possible_types(part, known) for part in node.parts]
    common = next((each for each in VALUE_TYPES if all(each in side for side in sides)), None)
    left, right = node.parts
    if common is None:
        what = f"{_describe_part(left)} and {_describe_part(right)} cannot be compared"
        one, other = (" or ".join(side) or "not comparable" for side in sides)
        raise _MismatchError(what, f"one is {one}, the other {other}")
    if common == "text" and node.kind not in ("=", "!="):
        raise _MismatchError(f"{_describe_part(left)} has no order", "use = or !=, or give the column an order")
    order = _find_common_order(node, known) if common == "rank" else ()
    return tuple(_resolve(part, common, known, order) for part in node.parts)


def _possible_types(node: RulePart, known: Mapping[str, BoundColumn]) -> tuple[str, ...]:
    """Return the types that a value can be read as."""
    if node.kind == "column":
        return _column_types(known[str(node.value)])
    if node.kind == "text":
        return ("date", "rank", "text") if parse_day(str(node.value)) is not None else ("rank", "text")
    if node.kind in ("number", "date"):
        return (node.kind,)
    if node.kind == "truth":
        return ("text",)
    if node.kind == "negative":
        return ("number",) if "number" in _possible_types(node.parts[0], known) else ()
    if node.kind in ARITHMETIC_TYPES:
        left, right = (_possible_types(part, known) for part in node.parts)
        results = ARITHMETIC_TYPES[node.kind].items()
        return tuple(dict.fromkeys(result for (a, b), result in results if a in left and b in right))
    return ()


def _column_types(column: BoundColumn) -> tuple[str, ...]:
    """Return the types that a column can be read as, the most specific first."""
    storage = column.column.storage
    if column.request.order:
        return ("rank", "text")
    if storage in (Storage.INTEGER, Storage.NUMBER):
        return ("number",) if column.kind is Kind.CONTINUOUS else ("number", "text")
    if storage in (Storage.DATE, Storage.TIMESTAMP) or (column.kind is Kind.DATE and column.column.date_format):
        return ("date",)
    return ("text",)


def _find_common_order(node: RulePart, known: Mapping[str, BoundColumn]) -> tuple[str, ...]:
    orders = {known[str(part.value)].request.order or () for part in node.parts if part.kind == "column"}
    if len(orders) != 1:
        raise _MismatchError("categories of different orders cannot be compared", "compare a column with a category")
    order = orders.pop()
    for part in node.parts:
        if part.kind == "text" and part.value not in order:
            raise _MismatchError(f"'{part.value}' is not in the order of its column", "write one of its categories")
    return order


def _resolve(node: RulePart, value_type: str, known: Mapping[str, BoundColumn], order: Sequence[str] = ()) -> RulePart:
    """Return a value as this type; dates become days, categories become positions in the order."""
    if node.kind in ARITHMETIC_TYPES:
        sides = [_possible_types(part, known) for part in node.parts]
        results = ARITHMETIC_TYPES[node.kind].items()
        types = next(t for t, result in results if result == value_type and t[0] in sides[0] and t[1] in sides[1])
        parts = tuple(_resolve(part, each, known) for part, each in zip(node.parts, types, strict=True))
        return replace(node, parts=parts, value_type=value_type)
    if node.kind == "negative":
        return replace(node, parts=(_resolve(node.parts[0], "number", known),), value_type=value_type)
    value = node.value
    if node.kind in ("text", "date") and value_type == "date":
        value = parse_day(str(value)) or 0.0
    elif node.kind == "text" and value_type == "rank":
        value = float(order.index(str(value)))
    elif node.kind == "truth":
        value = str(value).lower()
    return replace(node, value=value, value_type=value_type)


def parse_day(text: str, form: str | None = None) -> float | None:
    """Return a date or time as days since 1970, None for other texts.

    >>> parse_day("1970-01-02"), parse_day("02.01.1970", "%d.%m.%Y"), parse_day("soon")
    (1.0, 1.0, None)
    """
    text = text.strip()
    for each in (form, None):
        try:
            moment = datetime.strptime(text, each) if each else datetime.fromisoformat(text)
        except ValueError:
            continue
        return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() / SECONDS_PER_DAY
    return None


def _describe_part(node: RulePart) -> str:
    return f"'{node.value}'" if node.kind == "column" else f"the part at character {node.position + 1}"
