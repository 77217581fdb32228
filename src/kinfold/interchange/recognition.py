"""Which tool a file is of, by what it holds: ARX's projects, µ-ANT's settings, sdcMicro's reports and scripts.

What is not read is refused with what to do instead: objects that R or Java saved hold code and cannot be looked into
without running it, and of other formats no description was found, or none that says what a policy has to.
"""

from __future__ import annotations

from pathlib import Path

from kinfold.errors import DataError, require_ordinary
from kinfold.interchange.conversion import Conversion, convert, of_description
from kinfold.interchange.deid import read_deid
from kinfold.interchange.mu_ant import read_mu_ant
from kinfold.interchange.sdc_micro import is_sdc_micro, read_sdc_micro
from kinfold.interchange.xml_document import LARGEST_XML

ZIP = b"PK"
SAVED_BY_R = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"RDX", b"RDA", b"X\n", b"A\n")
SAVED_BY_JAVA = b"\xac\xed\x00\x05"
ARGUS = ("<RECODABLE>", "<IDLEVEL>", "<TRUNCABLE>")  # in the .rda of mu-Argus, which is not R's

READ = "a project of ARX (.deid), settings of µ-ANT (.xml), a report or a script of sdcMicro (.html, .R)"
WRITE_ONE = "write a policy instead: kinfold profile DATA --write-policy policy.toml"


def converted(path: Path) -> Conversion:
    """Return the policy that a file of another tool becomes, with the data where it holds them."""
    data = _beginning(path)
    where = f"'{path.name}'"
    if data.startswith(ZIP) or path.suffix.lower() == ".deid":
        return convert(read_deid(path))
    _refuse_saved(data, where)
    if len(data) > LARGEST_XML:
        raise DataError(f"{where} is larger than is read ({LARGEST_XML:,} bytes)", fix=f"name {READ}")
    text = data.decode("utf-8-sig", errors="replace")
    if is_sdc_micro(text):
        return of_description(read_sdc_micro(text, where))
    if text.lstrip().startswith("<") and "<html" not in text[:1000].lower() and not _of_argus(text):
        return of_description(read_mu_ant(data, where))
    if _of_argus(text):
        raise DataError(f"{where} is metadata of mu-Argus, which is not read", fix=WRITE_ONE)
    raise DataError(f"{where} is no file that is read", fix=f"name {READ}; else {WRITE_ONE}")


def _beginning(path: Path) -> bytes:
    require_ordinary(path, DataError(f"'{path}' is no ordinary file", fix=f"name {READ}"))
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_XML + 1)
    except OSError as error:
        raise DataError(f"'{path}': {error.strerror}", fix="check the path and its rights") from None


def _refuse_saved(data: bytes, where: str) -> None:
    if data.startswith(SAVED_BY_R):
        fix = "in R: report(sdc) writes a page, sdcApp saves a script; name one of these"
        raise DataError(f"{where} is an object that R saved, which is not read", fix=fix)
    if data.startswith(SAVED_BY_JAVA):
        fix = "save the whole project in ARX (.deid), or export the hierarchy as CSV and name it in a policy"
        raise DataError(f"{where} is an object that Java saved, which is never opened", fix=fix)


def _of_argus(text: str) -> bool:
    return any(word in text for word in ARGUS)
