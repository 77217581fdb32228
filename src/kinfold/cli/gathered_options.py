"""Options that a command gets together: as one mapping where it does the same with each, or as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from typing import Any, TypeAlias, get_type_hints

Command: TypeAlias = Callable[..., None]
Gathered: TypeAlias = Mapping[str, Any]


def gathers(name: str, options: Gathered, defaults: Gathered | None = None) -> Callable[[Command], Command]:
    """Give a command these options, by name and annotation; it gets their values as one parameter of this name."""
    return _gathered(name, options, defaults or {}, dict)


def offers(name: str, kind: type[Any]) -> Callable[[Command], Command]:
    """Give a command the fields of a dataclass as options; it gets them as one such value under this name."""
    options = get_type_hints(kind, include_extras=True)
    return _gathered(name, options, {field.name: field.default for field in fields(kind)}, kind)


def _gathered(
    name: str, options: Gathered, defaults: Gathered, made: Callable[..., Any]
) -> Callable[[Command], Command]:
    def decorated(command: Command) -> Command:
        @wraps(command)
        def wrapped(**given: Any) -> None:
            values = {option: given.pop(option) for option in options}
            command(**given, **{name: made(**values)})

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
