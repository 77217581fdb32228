"""The command line. A command parses its options, calls one function and prints one result."""

from __future__ import annotations


def main() -> None:
    """Run the command line, in a child process."""
    import signal

    if hasattr(signal, "pthread_sigmask"):  # signals wait until the supervisor in `process` handles them
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    from kinfold.cli import process  # light: typer and rich load in the child process

    process.hide_passwords_in_arguments()
    with process.run_in_child_process():
        from kinfold.cli.app import app
        from kinfold.cli.terminal import report_errors

        with report_errors():  # errors outside the command functions
            app()
