"""Unpacking: a compressed file becomes a plain copy in the folder of the run; what is broken or cut is refused.

Bytes are counted as they come out, whatever a header says: a small file may hold more than fits anywhere.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from kinfold.errors import DataError, KinfoldError
from kinfold.rows.engines.source import CHUNK
from kinfold.rows.reading_limits import check_expanded

DEFLATED = 1032  # times its size is the most that a part of a workbook expands to
MOST_TIMES = 100  # its size: sheets of real tables expand ten to twenty times
SMALL_SHEETS = 200_000_000  # bytes that any workbook may hold


def unpack(path: Path, packing: str, copy: Path) -> None:
    """Write what a compressed file holds to a copy."""
    try:
        with _opened(path, packing) as packed, copy.open("wb") as target:
            while chunk := packed.read(CHUNK):
                target.write(chunk)
                check_expanded(target.tell(), path.name)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise _broken(path) from error
    except OSError as error:
        if error.errno is None:  # what the library says, not the disk
            raise _broken(path) from error
        raise


def check_workbook(path: Path) -> None:
    """Refuse a workbook that expands as no real one does, or whose size cannot be told; a small file is not opened."""
    packed = path.stat().st_size
    most, size = max(SMALL_SHEETS, MOST_TIMES * packed), 0
    if packed * DEFLATED <= most:
        return
    try:
        with zipfile.ZipFile(path) as book:
            for part in book.infolist():
                part.file_size = 1 << 62  # read to its end, whatever its header says
                with book.open(part) as file:
                    while chunk := file.read(CHUNK):
                        size += len(chunk)
                        check_expanded(size, path.name, most)
    except KinfoldError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):
        raise DataError(f"'{path.name}' cannot be read as an Excel file", fix="check that it is whole") from None


def _opened(path: Path, packing: str) -> Any:
    if packing == ".zst":
        return pa.input_stream(str(path), compression="zstd")
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return openers[packing](path, "rb")


def _broken(path: Path) -> DataError:
    return DataError(f"'{path.name}' cannot be unpacked: it is broken, or not whole", fix="fetch or pack it again")
