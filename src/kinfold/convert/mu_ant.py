"""µ-ANT settings (XML): one `attribute` per column, and one `attribute_type` per role with its protection.

    <attribute name="age" attribute_type="quasi_identifier" data_type="numeric_discrete"/>
    <attribute_type type="quasi_identifier" protection="k-anonymity" k="3"/>

attribute_type    identifier, quasi_identifier, confidential, non_confidential
data_type         numeric_discrete, numeric_continuous, date (yyyy/mm/dd), categoric, categoric_ordinal, semantic
protection        suppression (also spelt supression), k-anonymity, t-closeness, not

Source: README and code of the tool (github.com/CrisesUrv/microaggregation-based_anonymization_tool). The protection
gives the role: suppressed columns become identifiers, k-anonymous ones quasi-identifiers, t-close ones confidential.
The ontologies (OWL) of semantic columns are not read.
"""

from __future__ import annotations

import math
from typing import Any
from xml.etree.ElementTree import Element

from kinfold.convert.arx import parse_xml
from kinfold.convert.conversion import MIN_K, TableDescription
from kinfold.errors import DataError, Problem
from kinfold.tables.schema import Kind, Role

ROLES = {
    "identifier": Role.IDENTIFIER,
    "quasi_identifier": Role.QUASI,
    "confidential": Role.CONFIDENTIAL,
    "non_confidential": Role.OTHER,
}
PROTECTION_ROLES = {
    "suppression": Role.IDENTIFIER,
    "supression": Role.IDENTIFIER,  # sic, in the source of µ-ANT
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
DATE_FORMAT = "%Y/%m/%d"


def read_mu_ant(data: bytes, where: str) -> TableDescription:
    """Return the settings in a configuration."""
    root = parse_xml(data, where)
    if not any("attribute_type" in element.attrib for element in root.iter("attribute")):
        fix = "name the configuration of µ-ANT, a project of ARX (.deid), or a report or script of sdcMicro"
        raise DataError(f"{where} is XML, but does not describe attributes as µ-ANT does", fix=fix)
    reading = _SettingsReader(where)
    protections = {reading.read_word(each, "type", ROLES): each for each in root.iter("attribute_type")}
    for element in root.iter("attribute"):
        reading.add(element, protections)
    privacy = reading.read_privacy(protections)
    if reading.problems:
        raise DataError(reading.problems)
    sections: dict[str, dict[str, Any]] = {"privacy": privacy, "method": {"name": "auto"}}
    if any(keys.get("type") == Kind.DATE for keys in reading.columns.values()):
        sections = {"source": {"dates": DATE_FORMAT}, **sections}
    return TableDescription("µ-ANT", reading.columns, sections, reading.comments, tuple(reading.notes))


class _SettingsReader:
    """Collects columns, notes and problems while the settings are read."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.columns: dict[str, dict[str, Any]] = {}
        self.comments: dict[str, str] = {}
        self.notes: list[str] = []
        self.problems: list[Problem] = []

    def read_word(self, element: Element, key: str, known: dict[str, Any]) -> str:
        """Return a known word of an attribute, or record a problem."""
        word = element.get(key, "").strip().lower().replace("quasi-identifier", "quasi_identifier")
        word = word.replace("non-confidential", "non_confidential")
        if word not in known:
            what = f"{self.where}: {key} of '{element.get('name') or element.tag}' is unknown to µ-ANT"
            self.problems.append(Problem(what, f"µ-ANT has {', '.join(known)}"))
        return word

    def add(self, element: Element, protections: dict[str, Element]) -> None:
        """Add a column with the role of its protection."""
        name = element.get("name", "")
        if not name or name in self.columns:
            what = f"{self.where} describes a column without a name, or a column twice"
            self.problems.append(Problem(what, "give each column its name in the header of the data"))
            return
        sort, kind = self.read_word(element, "attribute_type", ROLES), self.read_word(element, "data_type", KINDS)
        self.columns[name] = {"role": str(self._role(name, sort, protections.get(sort)))}
        self.comments[name] = f"µ-ANT: {sort}, {kind}"
        if self.columns[name]["role"] != Role.IDENTIFIER and kind in KINDS:
            self.columns[name]["type"] = str(KINDS[kind])
            if kind == "semantic":
                tree = f"columns.{name}.hierarchy = {{ tree = … }} or {{ file = … }}"
                self.notes.append(f"'{name}': its ontology is not read; values are equal or not, unless you set {tree}")
            if kind == "categoric_ordinal":
                how = 'set type = "ordinal" and order = […]'
                self.notes.append(f"'{name}': µ-ANT has no order; to give one, {how}")

    def _role(self, name: str, sort: str, protection: Element | None) -> Role:
        default = ROLES.get(sort, Role.IDENTIFIER)
        if protection is None:
            self.notes.append(f"'{name}': {sort} has no protection; its role is {default}")
            return default
        role = PROTECTION_ROLES.get(self.read_word(protection, "protection", PROTECTION_ROLES))
        if role is None and default in (Role.IDENTIFIER, Role.QUASI):
            self.notes.append(f"'{name}': µ-ANT leaves it as it is; kinfold protects it as {default}")
        return role or default

    def read_privacy(self, protections: dict[str, Element]) -> dict[str, Any]:
        """Return the promises; µ-ANT has one k and one t."""
        k, t = (self._read_number(protections, *each) for each in (("k-anonymity", "k"), ("t-closeness", "t")))
        if k is None or k < MIN_K or k != int(k):
            self.notes.append(f"there is no k of {MIN_K} or more, but a policy needs one: k = {MIN_K} is set")
            k = MIN_K
        if t is not None and not 0 < t <= 1:
            self.notes.append("its t is not above 0 and at most 1: left out")
            t = None
        return {"k": int(k)} | ({"t": t} if t is not None else {})

    def _read_number(self, protections: dict[str, Element], protection: str, key: str) -> float | None:
        named = [each for each in protections.values() if each.get("protection", "").strip().lower() == protection]
        try:
            number = float(named[0].get(key, "")) if named else None
        except ValueError:
            number = math.nan
        if number is not None and not math.isfinite(number):
            self.problems.append(Problem(f"{self.where}: {key} of {protection} is not a number", f'write {key}="3"'))
            return None
        return number
