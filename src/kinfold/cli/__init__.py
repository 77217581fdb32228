"""The command: thin. A command parses, calls one function, prints one thing."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from kinfold.cli.app import app
    from kinfold.cli.shown import errors

    with errors():  # also around what a command does before its own
        app()
