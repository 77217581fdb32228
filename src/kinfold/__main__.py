"""`python -m kinfold` is the command `kinfold`."""

from kinfold.cli import main

main()
