"""Fuzzing by coverage, where atheris installs: every reader of strangers' bytes for some minutes each.

    python -m tools.fuzz READER SECONDS     readers are those of tests/fuzz/readers.py

Ends with code 1, and leaves the input in build/fuzz, where a reader ends in anything but a result or an error of
kinfold that tells no value of the data.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Fuzz one reader."""
    try:
        import atheris
    except ImportError:
        print("atheris is not installed: pip install atheris (Linux, Python 3.11 or newer)", file=sys.stderr)
        return 2
    name, seconds = sys.argv[1], sys.argv[2]
    place = ROOT / "build" / "fuzz" / name
    place.mkdir(parents=True, exist_ok=True)
    sys.path[:0] = [str(ROOT / "tests")]
    with atheris.instrument_imports(include=["kinfold"]):
        from fuzz import readers

        read = readers.READERS[name]
    for number, seed in enumerate(_seeds(readers, name)):
        (place / f"seed-{number}").write_bytes(seed)
    limits = [f"-max_total_time={seconds}", "-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={place}/"]
    atheris.Setup([sys.argv[0], str(place), *limits], lambda data: read(data))
    atheris.Fuzz()
    return 0


def _seeds(readers: Any, name: str) -> list[bytes]:
    """Something good to start from."""
    return {
        "csv": [readers.TABLE.encode().split(b"\n", 1)[1], b'"x\ny",2,,\n'],
        "policy": [readers.POLICY.encode()],
        "hierarchy": [b"02138;0213*;*\n02139;0213*;*\n"],
        "project": [readers.packed(readers.study())],
        "settings": list(readers.SETTINGS),
        "certificate": [readers.sealed(readers.certificate())],
    }[name]


if __name__ == "__main__":
    sys.exit(main())
