"""A zip archive that is not trusted: parts are read by name into memory, within bounds, and nothing is unpacked.

size       every part is read to its bound and no further, whatever its header claims; all parts share one bound too
methods    stored and deflated, which can be read piece by piece; no passwords
names      a name is looked up in the archive and never used as a path
XML        see `xml_document`
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import Self
from xml.etree.ElementTree import Element

from kinfold.errors import DataError
from kinfold.interchange.xml_document import LARGEST_XML, xml_root

# Far above what ARX writes, far below what would exhaust a machine.
LARGEST = 1 << 30  # bytes, of all parts together
MOST_PARTS = 10_000

READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 1  # a flag of the zip format


class Archive:
    """The parts of an archive by their names."""

    def __init__(self, path: Path) -> None:
        self.name = f"'{path.name}'"
        self._left = LARGEST
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, struct.error, RuntimeError, ValueError):
            raise DataError(f"{self.name} is not a zip archive", fix="check that the file is whole") from None
        except OSError as error:
            raise DataError(f"'{path}': {error.strerror}", fix="check the path and its rights") from None
        self._parts = {part.filename: part for part in self._zip.infolist()}
        if len(self._parts) < len(self._zip.infolist()) or len(self._parts) > MOST_PARTS:
            self._zip.close()
            what = f"{self.name} holds two parts of one name, or more than {MOST_PARTS:,} parts"
            raise DataError(what, fix="save the project again")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def part(self, name: str, largest: int = LARGEST) -> bytes:
        """Return the bytes of a part, or say why it cannot be had."""
        if name not in self._parts:
            raise DataError(f"{self.name} has no part '{name}'", fix="check that it is a whole ARX project")
        held, bound = self._parts[name], min(largest, self._left)
        if held.compress_type not in READABLE or held.flag_bits & ENCRYPTED:
            what = f"'{name}' in {self.name} is encrypted, or packed in a way that is not read"
            raise DataError(what, fix="save the project again, as ARX does")
        try:
            with self._zip.open(held) as file:
                data = file.read(bound + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError):
            raise DataError(f"'{name}' in {self.name} is damaged", fix="check that the file is whole") from None
        if len(data) > bound:
            what = f"'{name}' in {self.name} is larger than is read ({bound:,} bytes)"
            raise DataError(what, fix="export the data from ARX as CSV, and write a policy for it")
        self._left -= len(data)
        return data

    def text(self, name: str) -> str:
        """Return a part as text: UTF-8, or what ARX wrote on an older Windows."""
        data = self.part(name)
        for encoding in ("utf-8-sig", "cp1252"):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                continue
        raise DataError(f"'{name}' in {self.name} is not text in UTF-8 or Windows-1252", fix="save the project again")

    def xml(self, name: str) -> Element:
        """Return the root of a part that is XML without a document type."""
        return xml_root(self.part(name, LARGEST_XML), f"'{name}' in {self.name}")
