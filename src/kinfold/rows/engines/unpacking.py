"""Unpacking: a compressed file becomes a plain copy in the folder of the run; what is broken or cut is refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from kinfold.errors import DataError
from kinfold.rows.engines.source import CHUNK


def unpack(path: Path, packing: str, copy: Path) -> None:
    """Write what a compressed file holds to a copy."""
    try:
        with _opened(path, packing) as packed, copy.open("wb") as target:
            while chunk := packed.read(CHUNK):
                target.write(chunk)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise _broken(path) from error
    except OSError as error:
        if error.errno is None:  # what the library says, not the disk
            raise _broken(path) from error
        raise


def _opened(path: Path, packing: str) -> Any:
    if packing == ".zst":
        return pa.input_stream(str(path), compression="zstd")
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return openers[packing](path, "rb")


def _broken(path: Path) -> DataError:
    return DataError(f"'{path.name}' cannot be unpacked: it is broken, or not whole", fix="fetch or pack it again")
