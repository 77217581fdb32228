"""XML that is not trusted, by defusedxml: without a document type nothing in it can expand or reach out."""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError

from defusedxml import DTDForbidden
from defusedxml.ElementTree import fromstring

from kinfold.errors import DataError

LARGEST_XML = 1 << 24  # bytes, of one document


def xml_root(data: bytes, where: str) -> Element:
    """Return the root of a document, or say what is wrong with it."""
    try:
        root: Element = fromstring(data, forbid_dtd=True)
    except DTDForbidden:
        what = f"{where} declares a document type, which no tool that is read here writes"
        raise DataError(what, fix="do not trust this file") from None
    except (ParseError, ValueError, LookupError):
        raise DataError(f"{where} is not XML", fix="check that the file is whole") from None
    return root
