"""The language of edit rules: a text becomes a tree, or an error that shows the place.

    rule        either [implies rule]
    either      both {or both}
    both        denial {and denial}
    denial      not denial | relation
    relation    sum {(= | == | != | <> | < | <= | > | >=) sum}      a < b <= c is a < b and b <= c
                sum [not] in (sum, ...) | sum is [not] missing
    sum         product {(+ | -) product}
    product     value {* value}
    value       number | "text" or 'text' | 2024-12-31 | true | false | column | `any column` | - value | ( rule )

Words are understood in any case. A quote inside a text is written twice. Nothing is ever run but the tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

LONGEST, DEEPEST = 10_000, 40  # characters of a rule, and how far it nests or a sum goes on

TOKENS = re.compile(
    r"""(?P<space>\s+)
    | (?P<date>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?(?![\w-]))
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<text>"(?:[^"]|"")*"|'(?:[^']|'')*')
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><=|>=|==|!=|<>|[-+*=<>(),])""",
    re.VERBOSE,
)
WORDS = ("and", "or", "not", "implies", "in", "is", "missing", "true", "false")
RELATIONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class RuleError(ValueError):
    """A text that is no rule; the message shows the place."""

    def __init__(self, what: str, text: str, at: int) -> None:
        rest = text[at : at + 20].strip()
        super().__init__(f"{what} {f'at character {at + 1}, before {rest!r}' if rest else 'at its end'}")


@dataclass(frozen=True)
class RulePart:
    """A part of a rule: what it is, what it is made of, and where it stands in the text.

    Kinds: number, text, date, truth and column (with a value); + - * negative; = != < <= > >=; missing; not, and, or.
    """

    kind: str
    at: int
    parts: tuple[RulePart, ...] = ()
    value: float | str | bool = ""
    sort: str = ""  # as what its values are compared, once that is known: see `meaning`

    def walk(self) -> Iterator[RulePart]:
        """Yield this part and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule speaks of, each once, in its order."""
        return tuple(dict.fromkeys(str(node.value) for node in self.walk() if node.kind == "column"))


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(text: str) -> RulePart:
    """Return the tree of a rule.

    >>> parse('age < 16 implies marital = "single"').kind
    'or'
    >>> parse("discharge >= ")
    Traceback (most recent call last):
        ...
    kinfold.request.rules.language.RuleError: a value is missing at its end
    """
    if len(text) > LONGEST:
        raise RuleError(f"it has more than {LONGEST} characters", text, LONGEST)
    return _Parser(text, [*_tokens(text)]).whole()


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = TOKENS.match(text, at)
        if found is None:
            what = "a quote is not closed" if text[at] in "\"'`" else "this is not understood"
            raise RuleError(what, text, at)
        kind = str(found.lastgroup)
        word = found.group().lower()
        if kind == "word" and word in WORDS:
            yield _Token("word", word, at)
        elif kind != "space":
            yield _Token("column" if kind == "word" else kind, found.group(), at)
        at = found.end()


class _Parser:
    """Recursive descent: one method for each line of the grammar."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text, self._tokens, self._next, self._depth = text, tokens, 0, 0

    def whole(self) -> RulePart:
        """Read all of it."""
        found = self._rule()
        if self._next < len(self._tokens):
            raise self._wrong("'and', 'or' or 'implies' is missing")
        return found

    def _rule(self) -> RulePart:
        found = self._either()
        if (token := self._taken("implies")) is not None:
            found = RulePart("or", token.at, (RulePart("not", found.at, (found,)), self._deeper(self._rule)))
        return found

    def _either(self) -> RulePart:
        parts = [self._both()]
        while self._taken("or") is not None:
            parts.append(self._both())
        return _joined("or", parts)

    def _both(self) -> RulePart:
        parts = [self._denial()]
        while self._taken("and") is not None:
            parts.append(self._denial())
        return _joined("and", parts)

    def _denial(self) -> RulePart:
        if (token := self._taken("not")) is None:
            return self._relation()
        return RulePart("not", token.at, (self._deeper(self._denial),))

    def _relation(self) -> RulePart:
        left = self._sum()
        if (token := self._taken("is")) is not None:
            denied = self._taken("not") is not None
            self._expected("missing")
            return _denied(RulePart("missing", token.at, (left,)), denied)
        if (token := self._taken("in")) is not None:
            return self._among(left, token, denied=False)
        if self._follows("not", "in"):
            self._next += 1
            return self._among(left, self._expected("in"), denied=True)
        found = []
        while (token := self._taken(*RELATIONS)) is not None:
            right = self._sum()
            found.append(RulePart(RELATIONS[token.text], token.at, (left, right)))
            left = right
        return _joined("and", found) if found else left

    def _among(self, left: RulePart, token: _Token, *, denied: bool) -> RulePart:
        self._expected("(")
        items = [self._sum()]
        while self._taken(",") is not None:
            items.append(self._sum())
        self._expected(")")
        return _denied(_joined("or", [RulePart("=", token.at, (left, item)) for item in items]), denied)

    def _sum(self) -> RulePart:
        return self._chain(self._product, "+", "-")

    def _product(self) -> RulePart:
        return self._chain(self._value, "*")

    def _chain(self, part: Callable[[], RulePart], *signs: str) -> RulePart:
        found = part()
        for _ in range(DEEPEST):
            if (token := self._taken(*signs)) is None:
                return found
            found = RulePart(token.text, token.at, (found, part()))
        raise self._wrong("it goes on for too long")

    def _value(self) -> RulePart:
        if (token := self._taken("-")) is not None:
            return RulePart("negative", token.at, (self._deeper(self._value),))
        if (token := self._taken("(")) is not None:
            found = self._deeper(self._rule)
            self._expected(")")
            return replace(found, at=token.at)
        if (token := self._taken("true", "false")) is not None:
            return RulePart("truth", token.at, value=token.text == "true")
        if self._next == len(self._tokens) or self._tokens[self._next].kind in ("word", "sign"):
            raise self._wrong("a value is missing")
        token = self._tokens[self._next]
        self._next += 1
        return _literal(token)

    def _deeper(self, part: Callable[[], RulePart]) -> RulePart:
        if self._depth == DEEPEST:
            raise self._wrong("it nests too deeply")
        self._depth += 1
        found = part()
        self._depth -= 1
        return found

    def _taken(self, *texts: str) -> _Token | None:
        """Take the next token where it is one of these words or signs."""
        if not any(self._follows(text) for text in texts):
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def _follows(self, *texts: str) -> bool:
        ahead = self._tokens[self._next : self._next + len(texts)]
        return [t.text for t in ahead] == list(texts) and all(t.kind in ("word", "sign") for t in ahead)

    def _expected(self, text: str) -> _Token:
        token = self._taken(text)
        if token is None:
            raise self._wrong(f"'{text}' is missing")
        return token

    def _wrong(self, what: str) -> RuleError:
        at = self._tokens[self._next].at if self._next < len(self._tokens) else len(self._text)
        return RuleError(what, self._text, at)


def _joined(word: str, parts: Sequence[RulePart]) -> RulePart:
    return parts[0] if len(parts) == 1 else RulePart(word, parts[0].at, tuple(parts))


def _denied(node: RulePart, denied: bool) -> RulePart:
    return RulePart("not", node.at, (node,)) if denied else node


def _literal(token: _Token) -> RulePart:
    quote = token.text[0]
    if token.kind == "number":
        return RulePart("number", token.at, value=float(token.text))
    if token.kind in ("text", "quoted"):
        inside = token.text[1:-1].replace(quote * 2, quote)
        return RulePart("text" if token.kind == "text" else "column", token.at, value=inside)
    return RulePart(token.kind, token.at, value=token.text)
