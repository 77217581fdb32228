"""A Java runtime for Spark: the one that JAVA_HOME names, the one on the PATH, or one of the system's."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from kinfold.errors import PolicyError

OLDEST = 17
SYSTEM = Path("/usr/lib/jvm")
FIX = "install one (Debian, Ubuntu: apt install openjdk-17-jre-headless), or set JAVA_HOME to the folder of one"


def java_home(system: Path = SYSTEM) -> Path:
    """Return the folder of a Java runtime that Spark can use, or say how to get one."""
    if named := os.environ.get("JAVA_HOME"):
        found = Path(named)
        if not _has_java(found):
            raise PolicyError("there is no Java in the folder that JAVA_HOME names", fix=FIX)
        if (old := version_of(found)) is not None and old < OLDEST:
            raise PolicyError(f"JAVA_HOME names Java {old}; Spark needs {OLDEST} or newer", fix=FIX)
        return found
    on_path = shutil.which("java")
    homes = [Path(on_path).resolve().parent.parent] if on_path else []
    homes += sorted(system.glob("*")) if system.is_dir() else []
    fitting = [home for home in homes if _has_java(home) and (version_of(home) or 0) >= OLDEST]
    if not fitting:
        raise PolicyError(f"Spark needs Java {OLDEST} or newer, and there is none here", fix=FIX)
    return fitting[0]


def version_of(home: Path) -> int | None:
    """Return the version of a Java runtime by its own words, or nothing where it has none."""
    try:
        told = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="(?:1\.)?([0-9]+)', told, re.MULTILINE)
    return int(found[1]) if found else None


def _has_java(home: Path) -> bool:
    return os.access(home / "bin" / "java", os.X_OK)
