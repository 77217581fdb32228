"""µ-ANT's XML: an `attribute` a column, and an `attribute_type` for each role with the protection that it gets.

    <attribute name="age" attribute_type="quasi_identifier" data_type="numeric_discrete"/>
    <attribute_type type="quasi_identifier" protection="k-anonymity" k="3"/>

attribute_type    identifier, quasi_identifier, confidential, non_confidential
data_type         numeric_discrete, numeric_continuous, date (yyyy/mm/dd), categoric, categoric_ordinal, semantic
protection        suppression (also spelt supression), k-anonymity, t-closeness, not

From the README and the source of the tool (github.com/CrisesUrv/microaggregation-based_anonymization_tool). Roles
follow the protection: what is suppressed is removed here, what is k-anonymous is a quasi-identifier, what is t-close
is confidential. The ontologies (OWL) of semantic columns are not read.
"""

from __future__ import annotations

import math
from typing import Any
from xml.etree.ElementTree import Element

from kinfold.errors import DataError, Problem
from kinfold.interchange.described import LEAST, Described
from kinfold.interchange.xml_document import xml_root
from kinfold.rows.schema import Kind, Role

ROLES = {
    "identifier": Role.IDENTIFIER,
    "quasi_identifier": Role.QUASI,
    "confidential": Role.CONFIDENTIAL,
    "non_confidential": Role.OTHER,
}
PROTECTED = {
    "suppression": Role.IDENTIFIER,
    "supression": Role.IDENTIFIER,  # so spelt in its source
    "k-anonymity": Role.QUASI,
    "t-closeness": Role.CONFIDENTIAL,
    "not": None,
}
KINDS = {
    "numeric_discrete": Kind.CONTINUOUS,
    "numeric_continuous": Kind.CONTINUOUS,
    "date": Kind.DATE,
    "categoric": Kind.NOMINAL,
    "categoric_ordinal": Kind.NOMINAL,
    "semantic": Kind.NOMINAL,
}
DATES = "%Y/%m/%d"


def is_mu_ant(root: Element) -> bool:
    """Whether a document describes attributes as µ-ANT does."""
    return any("attribute_type" in element.attrib for element in root.iter("attribute"))


def read_mu_ant(data: bytes, where: str) -> Described:
    """Return what a configuration says."""
    root = xml_root(data, where)
    if not is_mu_ant(root):
        fix = "name the configuration of µ-ANT, a project of ARX (.deid), or a report or script of sdcMicro"
        raise DataError(f"{where} is XML, and describes no attributes as µ-ANT does", fix=fix)
    reading = _Reading(where)
    protections = {reading.said(each, "type", ROLES): each for each in root.iter("attribute_type")}
    for element in root.iter("attribute"):
        reading.add(element, protections)
    privacy = reading.privacy(protections)
    if reading.problems:
        raise DataError(reading.problems)
    sections: dict[str, dict[str, Any]] = {"privacy": privacy, "method": {"name": "auto"}}
    if any(keys.get("type") == Kind.DATE for keys in reading.columns.values()):
        sections = {"source": {"dates": DATES}, **sections}
    return Described("µ-ANT", reading.columns, sections, reading.comments, tuple(reading.notes))


class _Reading:
    """The columns as they are read, with everything that is wrong and everything there is to say."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.columns: dict[str, dict[str, Any]] = {}
        self.comments: dict[str, str] = {}
        self.notes: list[str] = []
        self.problems: list[Problem] = []

    def said(self, element: Element, key: str, known: dict[str, Any]) -> str:
        """Return a word that is known there, or note that it is not."""
        word = element.get(key, "").strip().lower().replace("quasi-identifier", "quasi_identifier")
        word = word.replace("non-confidential", "non_confidential")
        if word not in known:
            what = f"{self.where}: {key} of '{element.get('name') or element.tag}' is none of µ-ANT's"
            self.problems.append(Problem(what, f"µ-ANT has {', '.join(known)}"))
        return word

    def add(self, element: Element, protections: dict[str, Element]) -> None:
        """Add a column in the role that its protection gives it."""
        name = element.get("name", "")
        if not name or name in self.columns:
            what = f"{self.where} describes a column without a name, or one twice"
            self.problems.append(Problem(what, "give each its name, as in the header of the data"))
            return
        sort, kind = self.said(element, "attribute_type", ROLES), self.said(element, "data_type", KINDS)
        self.columns[name] = {"role": str(self._role(name, sort, protections.get(sort)))}
        self.comments[name] = f"µ-ANT: {sort}, {kind}"
        if self.columns[name]["role"] != Role.IDENTIFIER and kind in KINDS:
            self.columns[name]["type"] = str(KINDS[kind])
            self._kind_told(name, kind)

    def _role(self, name: str, sort: str, protection: Element | None) -> Role:
        by_sort = ROLES.get(sort, Role.IDENTIFIER)
        if protection is None:
            self.notes.append(f"'{name}': no protection is named for {sort}; its role is {by_sort}")
            return by_sort
        asked = PROTECTED.get(self.said(protection, "protection", PROTECTED))
        if asked is None and by_sort in (Role.IDENTIFIER, Role.QUASI):
            self.notes.append(f"'{name}': µ-ANT leaves it as it is; as {by_sort} it is protected here")
        return asked or by_sort

    def _kind_told(self, name: str, kind: str) -> None:
        if kind == "semantic":
            tree = f"columns.{name}.hierarchy = {{ tree = … }} or {{ file = … }}"
            self.notes.append(f"'{name}': its ontology is not read; values are equal or not, unless you give {tree}")
        if kind == "categoric_ordinal":
            self.notes.append(f"'{name}': µ-ANT names no order; for one say type = \"ordinal\" and order = […]")

    def privacy(self, protections: dict[str, Element]) -> dict[str, Any]:
        """Return what is promised; µ-ANT has one k and one t."""
        k, t = (self._number(protections, *each) for each in (("k-anonymity", "k"), ("t-closeness", "t")))
        if k is None or k < LEAST or k != int(k):
            self.notes.append(f"no k of {LEAST} or more is named, and a policy has to: k = {LEAST} was put in")
            k = LEAST
        if t is not None and not 0 < t <= 1:
            self.notes.append("its t is not above 0 and at most 1: left out")
            t = None
        return {"k": int(k)} | ({"t": t} if t is not None else {})

    def _number(self, protections: dict[str, Element], protection: str, key: str) -> float | None:
        named = [each for each in protections.values() if each.get("protection", "").strip().lower() == protection]
        try:
            number = float(named[0].get(key, "")) if named else None
        except ValueError:
            number = math.nan
        if number is not None and not math.isfinite(number):
            self.problems.append(Problem(f"{self.where}: {key} of {protection} is no number", f'write {key}="3"'))
            return None
        return number
