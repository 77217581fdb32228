"""The command: thin. A command parses, calls one function, prints one thing."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    import signal

    from kinfold.cli.password_concealment import conceal_arguments

    conceal_arguments()
    if hasattr(signal, "pthread_sigmask"):  # signals wait until `stopping` listens, which takes a while to load
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    from kinfold.cli.stopping import kept

    kept(_run)


def _run() -> None:
    from kinfold.cli.app import app
    from kinfold.cli.terminal import errors

    with errors():  # also around what a command does before its own
        app()
