"""Untrusted zip archives and XML: parts are read by name into memory, within limits, and nothing is unpacked.

size       every part is read up to its limit, whatever its header claims; all parts share one limit
methods    stored and deflated, which can be read piece by piece; no passwords
names      a name is looked up in the archive and never used as a path
XML        read by defusedxml without a document type: nothing in it can expand or load a file
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import Self
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DTDForbidden
from defusedxml.ElementTree import fromstring

from kinfold.errors import DataError

MAX_XML_BYTES = 1 << 24  # of one document


def parse_xml(data: bytes, where: str) -> Element:
    """Return the root of an XML document; raise if it is not XML or declares a document type."""
    try:
        root: Element = fromstring(data, forbid_dtd=True)
    except DTDForbidden:
        what = f"{where} declares a document type, which no supported tool writes"
        raise DataError(what, fix="do not trust this file") from None
    except (ParseError, ValueError, LookupError):
        raise DataError(f"{where} is not XML", fix="check that the file is complete") from None
    return root


MAX_ARCHIVE_BYTES = 1 << 30  # of all parts together: more than ARX writes, less than exhausts a machine
MAX_PARTS = 10_000

READABLE_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED_FLAG = 1  # a flag of the zip format


class Archive:
    """The parts of a zip archive by name."""

    def __init__(self, path: Path) -> None:
        self.name = f"'{path.name}'"
        self._left = MAX_ARCHIVE_BYTES
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, struct.error, RuntimeError, ValueError):
            raise DataError(f"{self.name} is not a zip archive", fix="check that the file is complete") from None
        except OSError as error:
            raise DataError(f"'{path}': {error.strerror}", fix="check the path and its permissions") from None
        self._parts = {part.filename: part for part in self._zip.infolist()}
        if len(self._parts) < len(self._zip.infolist()) or len(self._parts) > MAX_PARTS:
            self._zip.close()
            what = f"{self.name} has two parts with the same name, or more than {MAX_PARTS:,} parts"
            raise DataError(what, fix="save the project again")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def read_part(self, name: str, largest: int = MAX_ARCHIVE_BYTES) -> bytes:
        """Return the bytes of a part."""
        if name not in self._parts:
            raise DataError(f"{self.name} has no part '{name}'", fix="check that it is a complete ARX project")
        part, limit = self._parts[name], min(largest, self._left)
        if part.compress_type not in READABLE_METHODS or part.flag_bits & ENCRYPTED_FLAG:
            what = f"'{name}' in {self.name} is encrypted, or packed with an unknown method"
            raise DataError(what, fix="save the project again, as ARX does")
        try:
            with self._zip.open(part) as file:
                data = file.read(limit + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError):
            raise DataError(f"'{name}' in {self.name} is damaged", fix="check that the file is complete") from None
        if len(data) > limit:
            what = f"'{name}' in {self.name} is larger than the limit ({limit:,} bytes)"
            raise DataError(what, fix="export the data from ARX as CSV, and write a policy for it")
        self._left -= len(data)
        return data

    def read_text(self, name: str) -> str:
        """Return a part as text: UTF-8, or Windows-1252 as older versions of ARX write it."""
        data = self.read_part(name)
        for encoding in ("utf-8-sig", "cp1252"):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                continue
        raise DataError(f"'{name}' in {self.name} is not text in UTF-8 or Windows-1252", fix="save the project again")

    def read_xml(self, name: str) -> Element:
        """Return the root of a part that is XML without a document type."""
        return parse_xml(self.read_part(name, MAX_XML_BYTES), f"'{name}' in {self.name}")
