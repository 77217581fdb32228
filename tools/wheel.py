"""The wheel, made twice in two folders and compared byte for byte, then put into dist/.

    python -m tools.wheel

Its time is that of the last commit. Each build starts from the committed files alone, under another path, so that
nothing of this machine or of this moment can be in it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def committed(*arguments: str) -> bytes:
    """Ask git about the last commit."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S603, S607


def built(folder: Path, seconds: str) -> Path:
    """Build the wheel of the last commit in a folder of its own."""
    source = folder / "source"
    source.mkdir(parents=True)
    archive = folder / "source.tar"
    archive.write_bytes(committed("archive", "--format=tar", "HEAD"))
    with tarfile.open(archive) as files:
        files.extractall(source, filter="data")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": seconds, "PYTHONHASHSEED": str(len(str(folder)))}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)  # noqa: S603
    return next(folder.glob("*.whl"))


def main() -> int:
    """Build twice, compare, keep one."""
    seconds = committed("log", "-1", "--format=%ct").decode().strip()
    with tempfile.TemporaryDirectory() as place:
        one, other = (built(Path(place) / name, seconds) for name in ("one", "a-longer-name"))
        if one.read_bytes() != other.read_bytes():
            print("two builds of the same commit differ: something of the machine or the moment is in the wheel")
            return 1
        (ROOT / "dist").mkdir(exist_ok=True)
        kept = Path(shutil.copy(one, ROOT / "dist"))
    print(f"{kept.relative_to(ROOT)}  sha256 {hashlib.sha256(kept.read_bytes()).hexdigest()}  (built twice, the same)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
