r"""The door to the terminal: what cannot be seen, or would steer the terminal, is written as an escape such as \x1b.

Names of columns and files, categories and notes may hold anything: escape sequences, line breaks, marks that turn the
direction of text, characters without a width. What Python calls printable goes through, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text
from typer.core import TyperGroup

from kinfold.cli.password_concealment import without_passwords


def plain(text: str) -> str:
    r"""Return a text as one line in which every character can be seen.

    >>> plain("a\x1b[2Jb\n\u202ec"), plain("Zoë 7")
    ('a\\x1b[2Jb\\n\\u202ec', 'Zoë 7')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def plain_json(text: str) -> str:
    r"""Return a JSON text in which characters that cannot be seen are escaped; outside its strings it has none.

    >>> plain_json('{"\u202ea": 1}')
    '{"\\u202ea": 1}'
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


class Terminal(Console):
    """A console that prints nothing but what can be seen: line by line, and again whatever a table or a bar makes."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; a text is one line."""
        super().print(*map(_seen, objects), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces of what is printed, with line breaks where the layout has them."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment("\n".join(map(plain, piece.text.split("\n"))), piece.style)


def _seen(thing: Any) -> Any:
    if isinstance(thing, str):
        return plain(thing)
    if isinstance(thing, Text) and not thing.plain.isprintable():
        return Text(plain(thing.plain), style=thing.style)
    return thing


class Commands(TyperGroup):
    """The commands, whose complaints about their arguments quote these as everything is quoted."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the arguments."""
        with _plain_complaints():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _plain_complaints():
            return super().invoke(ctx)


@contextmanager
def _plain_complaints() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's own
            said = plain(without_passwords(error.format_message()))
            error.format_message = lambda: said
        raise
