"""Options that a command gets together, as one mapping, for it does the same with each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeAlias

Command: TypeAlias = Callable[..., None]
Gathered: TypeAlias = Mapping[str, Any]


def gathers(name: str, options: Gathered, defaults: Gathered | None = None) -> Callable[[Command], Command]:
    """Give a command these options, by name and annotation; it gets their values as one parameter of this name."""

    def decorated(command: Command) -> Command:
        @wraps(command)
        def wrapped(**given: Any) -> None:
            values = {option: given.pop(option) for option in options}
            command(**given, **{name: values})

        return signed(wrapped, command, (name,), options, defaults)

    return decorated


def signed(
    wrapped: Command, command: Command, without: tuple[str, ...], options: Gathered, defaults: Gathered | None = None
) -> Command:
    """Let a command show the parameters of another without some, and these options after them."""
    kept = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name not in without]
    added = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=(defaults or {}).get(option), annotation=kind)
        for option, kind in options.items()
    ]
    wrapped.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in kept} | dict(options)
    return wrapped
