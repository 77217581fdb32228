"""The page of the command line, from the commands themselves.

python -m tools.commands_page            writes docs/commands.md
python -m tools.commands_page --check    ends with code 1 where the page is not what the commands say
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import typer.main

from kinfold import __version__
from kinfold.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
EXAMPLES = re.compile(r"\n*^Examples?:\s*(?P<lines>.*)\Z", re.MULTILINE | re.DOTALL)
VALUES = {
    str: "text",
    int: "whole number",
    float: "number",
    Path: "path",
    list[str]: "text, repeatable",
    list[Path]: "path, repeatable",
}
HEAD = f"""\
# Commands

Every command with its arguments and options, from the code; made by `make docs`. `kinfold COMMAND --help` says the
same.

```console
$ kinfold --version
kinfold {__version__}
```

Exit codes: 0 done, 1 a bug in kinfold, 2 usage or policy, 3 data that cannot be read as declared, 4 the request cannot
be met on this table, 5 verification failed, 130 interrupted (143 terminated, 129 hung up). Errors go to standard error.
`--json` prints one JSON object on standard output and nothing else there.

Options that are keys of a policy are put on top of `--policy FILE`, or stand for one:
`--quasi age,zip --confidential disease -k 5`.
"""


def page() -> str:
    """Return the whole page."""
    commands = typer.main.get_group(app).commands
    listed = [f"| [`{name}`](#kinfold-{name}) | {_sentence(each)} |" for name, each in commands.items()]
    table = "\n".join(["| command | what it does |", "| --- | --- |", *listed])
    return "\n".join([HEAD, table, "", *(_describe_command(name, each) for name, each in commands.items())])


def _describe_command(name: str, command: Any) -> str:
    """Return one command: what it does, its examples, its arguments and options."""
    words, lines = _split(command.help or "")
    rows = [_row(each) for each in command.params if not getattr(each, "hidden", False)]
    usage = " ".join(["kinfold", name, *(_value(each) for each in command.params if _is_argument(each))])
    examples = ["Examples:\n", *(f"- `{line}`" for line in lines), ""] if lines else []
    table = ["| option | value | default | what it is |", "| --- | --- | --- | --- |", *rows, ""] if rows else []
    return "\n".join([f"## kinfold {name}\n", f"`{usage}`\n", words, "", *examples, *table])


def _row(parameter: Any) -> str:
    names = [_value(parameter)] if _is_argument(parameter) else [*parameter.opts, *parameter.secondary_opts]
    value = "" if _is_argument(parameter) or parameter.is_flag else _value(parameter)
    said = " ".join((parameter.help or "").split()).replace("|", "\\|")
    must = "required" if parameter.required else _default(parameter)
    return f"| {', '.join(f'`{each}`' for each in names)} | {value} | {must} | {said} |"


def _default(parameter: Any) -> str:
    default = parameter.default
    return "" if default in (None, False, "") or callable(default) else f"`{default}`"


def _value(parameter: Any) -> str:
    if _is_argument(parameter):
        name = parameter.name.upper().rstrip("_")
        return name if parameter.required else f"[{name}]"
    return VALUES[parameter.type_descriptor.annotation]


def _is_argument(parameter: Any) -> bool:
    return not parameter.opts[0].startswith("-")


def _split(text: str) -> tuple[str, list[str]]:
    """Tell the words of a help text from its examples."""
    found = EXAMPLES.search(text)
    lines = re.findall(r"`(kinfold [^`]+)`", found["lines"]) if found else []
    words = EXAMPLES.sub("", text).strip()
    return words, [" ".join(line.split()) for line in lines]


def _sentence(command: Any) -> str:
    words = _split(command.help or "")[0].partition("\n\n")[0]
    return " ".join(words.split()).partition(". ")[0].rstrip(".").replace("|", "\\|")


def main() -> None:
    """Write the page, or compare it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), "utf-8")
    elif PAGE.read_text("utf-8") != page():
        sys.exit("docs/commands.md is not what the commands say; make it anew with make docs")


if __name__ == "__main__":
    main()
