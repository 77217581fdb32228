"""Convert files of other tools into policies: ARX projects, µ-ANT settings, sdcMicro reports and scripts.

The tool is recognized by the content of the file. Other files are refused with advice. Objects saved by R or Java may
hold code and are never opened.
"""

from __future__ import annotations

from pathlib import Path

from kinfold.convert.arx import MAX_XML_BYTES, ArxAttribute, ArxProject, read_deid
from kinfold.convert.conversion import Conversion, convert_description, convert_project
from kinfold.convert.mu_ant import read_mu_ant
from kinfold.convert.sdc_micro import is_sdc_micro, read_sdc_micro
from kinfold.errors import DataError, require_regular_file

__all__ = ["ArxAttribute", "ArxProject", "Conversion", "convert_file", "convert_project", "read_deid"]

ZIP_MAGIC = b"PK"
R_MAGIC = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"RDX", b"RDA", b"X\n", b"A\n")
JAVA_MAGIC = b"\xac\xed\x00\x05"
ARGUS_KEYWORDS = ("<RECODABLE>", "<IDLEVEL>", "<TRUNCABLE>")  # in .rda files of mu-Argus, which are not R files

READABLE_FILES = "an ARX project (.deid), µ-ANT settings (.xml), or an sdcMicro report or script (.html, .R)"
WRITE_POLICY_HINT = "write a policy instead: kinfold profile DATA --write-policy policy.toml"


def convert_file(path: Path) -> Conversion:
    """Return the policy for a file of another tool, with the data if the file holds them."""
    data, where = _read_start(path), f"'{path.name}'"
    if data.startswith(ZIP_MAGIC) or path.suffix.lower() == ".deid":
        return convert_project(read_deid(path))
    if data.startswith(R_MAGIC):
        fix = "in R, write a report with report(sdc) or save a script in sdcApp, and name that file"
        raise DataError(f"{where} is an object saved by R, which kinfold does not read", fix=fix)
    if data.startswith(JAVA_MAGIC):
        fix = "save the whole project in ARX (.deid), or export the hierarchy as CSV and name it in a policy"
        raise DataError(f"{where} is an object saved by Java, which kinfold never opens", fix=fix)
    if len(data) > MAX_XML_BYTES:
        raise DataError(f"{where} is larger than the limit ({MAX_XML_BYTES:,} bytes)", fix=f"name {READABLE_FILES}")
    text = data.decode("utf-8-sig", errors="replace")
    if is_sdc_micro(text):
        return convert_description(read_sdc_micro(text, where))
    if any(word in text for word in ARGUS_KEYWORDS):
        raise DataError(f"{where} is mu-Argus metadata, which kinfold does not read", fix=WRITE_POLICY_HINT)
    if text.lstrip().startswith("<") and "<html" not in text[:1000].lower():
        return convert_description(read_mu_ant(data, where))
    what = f"{where} is not a file that kinfold can convert"
    raise DataError(what, fix=f"name {READABLE_FILES}; or {WRITE_POLICY_HINT}")


def _read_start(path: Path) -> bytes:
    require_regular_file(path, DataError(f"'{path}' is not a regular file", fix=f"name {READABLE_FILES}"))
    try:
        with path.open("rb") as file:
            return file.read(MAX_XML_BYTES + 1)
    except OSError as error:
        raise DataError(f"'{path}': {error.strerror}", fix="check the path and its permissions") from None
