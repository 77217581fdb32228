"""Projects of ARX: what is read of them, and what is refused."""

from __future__ import annotations

import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from arx_projects import (
    AGES,
    ILLNESSES,
    QUASI,
    Defined,
    age,
    element,
    project,
    study,
    text,
    weights,
    zip_code,
)
from kinfold.convert import arx, read_deid
from kinfold.convert.arx import Criterion, convert_criteria, parse_criterion
from kinfold.errors import DataError
from kinfold.policy.model import Policy
from kinfold.tables.schema import Role

# What is read


def test_likeness_disclosure_and_average_risk_are_promises() -> None:
    sentences = ["5-anonymity", "2.0-basic likeness for attribute 'ill'", "enhanced-1.5-likeness for attribute 'ill'"]
    sentences += ["1.0-disclosure privacy for attribute 'ill'", "(0.1)-avg-reidentification-risk"]
    sentences += ["(0.2, 0.5, 0.05)-avg-reidentification-risk", "0.0-disclosure privacy for attribute 'ill'"]
    criteria = [arx.parse_criterion(sentence) for sentence in sentences]
    assert criteria[-1] is None
    privacy, _, notes = arx.convert_criteria([each for each in criteria if each], ["ill", "pay"])
    share = {"above": 0.5, "most": 0.05}
    assert privacy == {
        "k": 5,
        "beta": 2.0,
        "beta_kind": "basic",
        "delta": 1.0,
        "average_risk": 0.1,
        "risk_share": share,
    }
    Policy.parse({"privacy": privacy, "columns": {}})
    assert [note.partition(":")[0] for note in notes] == [
        "privacy.beta is for every confidential column, in ARX for one",
        "left out, because a policy has one kind of beta-likeness",
        "delta is stricter than in ARX",
        "privacy.delta is for every confidential column, in ARX for one",
    ]


def test_a_project_is_read_for_data_roles_types_hierarchies_and_promises(tmp_path: Path) -> None:
    criteria = ["5-anonymity", "distinct-2-diversity for attribute 'illness'", "(0.1, 0.3)-presence"]
    config = text("relativeMaxOutliers", "0.05") + text("metric", "Loss (0.5)") + weights(age=0.5, zip=1.0)
    read = read_deid(project(tmp_path, study(), criteria, config=config))
    assert (read.name, read.version, read.separator) == ("a study", "3.7.0", ";")
    assert read.data.startswith(b"name;age;zip;illness;visits\nperson 0;21;02138;flu;1\n")
    roles = [Role.IDENTIFIER, Role.QUASI, Role.QUASI, Role.CONFIDENTIAL, Role.OTHER]
    assert [attribute.role for attribute in read.attributes] == roles
    assert [attribute.datatype for attribute in read.attributes] == ["String", "Integer", "String", "String", "Integer"]
    assert read.attributes[1].hierarchy[0] == ("21", "20s", "*")
    assert [attribute.weight for attribute in read.attributes] == [None, 0.5, 1.0, None, None]
    assert [(each.letter, each.level, each.column) for each in read.criteria] == [("k", 5, ""), ("l", 2, "illness")]
    assert read.others == ("(0.1, 0.3)-presence",)
    assert (read.suppression, read.metric) == (0.05, "Loss (0.5)")
    assert read.values()["age"] == set(AGES)
    assert len(list(read.rows())) == 8


def test_serialized_parts_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project(tmp_path, study())
    opened: list[str] = []
    plain = zipfile.ZipFile.open

    def spy(self: zipfile.ZipFile, name: zipfile.ZipInfo, *args: object) -> object:
        opened.append(name.filename)
        return plain(self, name, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(zipfile.ZipFile, "open", spy)
    read_deid(path)
    assert opened
    assert all(name.endswith((".xml", ".csv")) for name in opened)


def test_levels_are_bounds_or_all(tmp_path: Path) -> None:
    read = read_deid(project(tmp_path, [age(least="1", most="2"), zip_code()]))
    assert [(each.lowest, each.highest) for each in read.attributes] == [(1, 2), (None, None)]


def test_an_order_keeps_its_lines(tmp_path: Path) -> None:
    column = Defined("level", ["low", "high"], QUASI, "Ordinal", "low\nmid & more\nhigh")
    assert read_deid(project(tmp_path, [column])).attributes[0].format == "low\nmid & more\nhigh"


@pytest.mark.parametrize("separator", ["\t", ",", "|", "#", "<"])
def test_the_separator_of_the_project_holds_for_data_and_hierarchies(tmp_path: Path, separator: str) -> None:
    read = read_deid(project(tmp_path, study(), separator=separator))
    assert read.separator == separator
    assert read.attributes[2].hierarchy[0] == ("02138", "0213*", "021**", "*")
    assert read.values()["illness"] == set(ILLNESSES)


def test_names_may_hold_anything(tmp_path: Path) -> None:
    names = ['a "quoted"; one', "../../etc/passwd", "Größe <cm>", "two\nlines", "C:\\x"]
    columns = [Defined(name, ["1", "2"], QUASI, hierarchy=[("1", "*"), ("2", "*")]) for name in names]
    read = read_deid(project(tmp_path, columns))
    assert [attribute.name for attribute in read.attributes] == names
    assert all(attribute.hierarchy for attribute in read.attributes)


def test_text_of_an_older_windows_is_read(tmp_path: Path) -> None:
    column = Defined("city", ["Köln", "Zürich"], QUASI, hierarchy=[("Köln", "*"), ("Zürich", "*")])
    old = "Köln;*\nZürich;*\n".encode("cp1252")
    parts = {"input/hierarchies/city.csv": old, "data/input.csv": "city\nKöln\nZürich\n".encode("cp1252")}
    read = read_deid(project(tmp_path, [column], parts=parts))
    assert read.attributes[0].hierarchy == (("Köln", "*"), ("Zürich", "*"))
    assert read.data.decode() == "city\nKöln\nZürich\n"


def test_the_first_vocabulary_has_the_format_in_the_place_of_the_type(tmp_path: Path) -> None:
    columns = [Defined("born", ["01.02.2003"], QUASI, "dd.MM.yyyy"), Defined("n", ["1"], QUASI, "Decimal")]
    old = {"metadata.xml": element("metadata", text("version", "2.0"))}
    read = read_deid(project(tmp_path, columns, parts=old))
    assert [(each.datatype, each.format) for each in read.attributes] == [("Date", "dd.MM.yyyy"), ("Decimal", "")]


def test_a_hierarchy_that_is_named_and_not_there_is_said(tmp_path: Path) -> None:
    read = read_deid(project(tmp_path, study(), parts={"input/hierarchies/zip.csv": None}))
    assert read.attributes[2].hierarchy == ()
    assert read.notes == ("'zip': the project names a hierarchy but does not contain it",)


def test_a_column_that_is_not_defined_is_an_identifier_and_said(tmp_path: Path) -> None:
    data = b"age;extra\n" + b"".join(f"{a};secret\n".encode() for a in AGES)
    read = read_deid(project(tmp_path, [age()], parts={"data/input.csv": data}))
    assert read.attributes[1].role is Role.IDENTIFIER
    assert "'extra'" in read.notes[0]


def test_a_project_without_a_configuration_promises_nothing(tmp_path: Path) -> None:
    read = read_deid(project(tmp_path, study(), parts={"input/config.xml": None, "project.xml": None}))
    assert (read.criteria, read.others, read.suppression, read.separator) == ((), (), 0.0, ";")


# What is refused


@pytest.mark.parametrize(
    ("version", "vocabulary"), [("3.9.1", "3.0"), ("4.0.0", "2.0"), ("", "2.0"), ("1.1", "1.0"), ("30.1", "2.0")]
)
def test_unknown_versions_are_refused_with_what_is_read(tmp_path: Path, version: str, vocabulary: str) -> None:
    told = {"metadata.xml": element("metadata", text("version", version) + text("vocabulary", vocabulary))}
    with pytest.raises(
        DataError, match=r"ARX 2 or 3 and save it again; kinfold reads vocabularies 1\.0 and 2\.0"
    ) as caught:
        read_deid(project(tmp_path, study(), parts=told))
    assert f"vocabulary '{vocabulary}'" in str(caught.value)


@pytest.mark.parametrize("version", ["2.0", "2.3.0", "3.4.1", "3.9.0", "3.10", "3.7.0-SNAPSHOT"])
def test_known_versions_are_read(tmp_path: Path, version: str) -> None:
    told = {"metadata.xml": element("metadata", text("version", version) + text("vocabulary", "2.0"))}
    assert read_deid(project(tmp_path, study(), parts=told)).version == version


SECRET = "somebody's secret"
DAMAGES: dict[str, tuple[dict[str, bytes | None], str]] = {
    "no metadata": ({"metadata.xml": None}, "not an ARX project"),
    "no data": ({"data/input.csv": None}, "no part 'data/input.csv'"),
    "no definition": ({"input/definition.xml": None}, "no part 'input/definition.xml'"),
    "metadata that is no XML": ({"metadata.xml": b"<metadata><version>3.9</metadata>"}, "is not XML"),
    "an encoding that is not known": ({"metadata.xml": b"<?xml version='1.0' encoding='x-no'?><metadata/>"}, "not XML"),
    "bytes that are no text": ({"data/input.csv": b"age\n\x81\x8d\x00\xff"}, "not text in UTF-8"),
    "an open quote": ({"data/input.csv": b'age;"zip\n' + SECRET.encode() * 20_000}, "a quote is open"),
    "no header": ({"data/input.csv": b""}, "no header"),
    "a header that names a column twice": ({"data/input.csv": b"age;age\n1;2\n"}, "twice"),
    "a column that is not there": ({"data/input.csv": b"age;zip\n1;2\n"}, "no column 'name'"),
    "a separator of two characters": ({"project.xml": element("project", text("separator", ";;"))}, "a single"),
    "a quote as the separator": ({"project.xml": element("project", text("separator", '"'))}, "a single character"),
}
DAMAGES |= {
    f"a share of {share}": ({"input/config.xml": element("config", text("relativeMaxOutliers", share))}, said)
    for share, said in (("1.5", "not between 0 and 1"), ("x", "not a num"), ("Infinity", "not a num"))
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_project_is_refused_without_a_value_of_the_data(tmp_path: Path, damage: str) -> None:
    parts, said = DAMAGES[damage]
    with pytest.raises(DataError, match=said) as caught:
        read_deid(project(tmp_path, study(), parts=parts))
    assert all(problem.fix for problem in caught.value.problems)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (replace(age(), type="SOME_ATTRIBUTE"), "unknown type"),
        (replace(age(), name=""), "without a name"),
        (replace(age(), datatype="Geography"), "unknown data type"),
        (age(least="-1"), "the min of its levels is not a number"),
        (age(most="9" * 5000), "the max of its levels is not a number"),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(tmp_path: Path, column: Defined, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_deid(project(tmp_path, [column]))


def test_a_column_defined_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="more than once"):
        read_deid(project(tmp_path, [zip_code(), zip_code()], parts={"input/hierarchies/zip.csv": b"1;*\n"}))


def test_a_record_with_other_fields_than_the_header_is_refused(tmp_path: Path) -> None:
    read = read_deid(project(tmp_path, [age(), zip_code()], parts={"data/input.csv": b"age;zip\n1;2\n3\n"}))
    with pytest.raises(DataError, match="record 2 has 1 fields, and the header 2"):
        list(read.rows())


def test_files_that_are_no_archive_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.deid"
    with pytest.raises(DataError, match="No such file"):
        read_deid(path)
    with pytest.raises(DataError, match="directory"):
        read_deid(tmp_path)
    whole = project(tmp_path, study()).read_bytes()
    for held in (b"", b"not a zip", whole[: len(whole) // 2]):
        path.write_bytes(held)
        with pytest.raises(DataError, match="is not a zip archive"):
            read_deid(path)


def test_a_part_that_was_changed_is_found_damaged(tmp_path: Path) -> None:
    path = project(tmp_path, study())
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as opened:
        start = opened.getinfo("data/input.csv").header_offset
    for place in range(start + 60, start + 70):
        whole[place] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(DataError, match="damaged"):
        read_deid(path)


# What is hostile


def test_a_part_that_unpacks_to_more_than_is_read_is_stopped_at_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arx, "MAX_ARCHIVE_BYTES", 1 << 20)
    bomb = b"age;zip\n" + b"0" * (64 << 20)
    path = project(tmp_path, [age(), zip_code()], parts={"data/input.csv": bomb})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(DataError, match="larger than the limit"):
        read_deid(path)


def test_a_header_that_lies_about_its_size_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project(tmp_path, study(), parts={"metadata.xml": b"<metadata>" + b" " * (1 << 22) + b"</metadata>"})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(struct.pack("<I", (1 << 22) + 21), struct.pack("<I", 21)))
    monkeypatch.setattr(arx, "MAX_XML_BYTES", 1 << 16)
    with pytest.raises(DataError, match=r"damaged|larger than the limit"):
        read_deid(path)


def test_all_parts_share_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project(tmp_path, study())
    with zipfile.ZipFile(path) as opened:
        sizes = [part.file_size for part in opened.infolist() if not part.filename.endswith(".dat")]
    monkeypatch.setattr(arx, "MAX_ARCHIVE_BYTES", sum(sizes))
    read_deid(path)
    monkeypatch.setattr(arx, "MAX_ARCHIVE_BYTES", sum(sizes) - 1)
    with pytest.raises(DataError, match="larger than the limit"):
        read_deid(path)


def test_too_many_parts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arx, "MAX_ARCHIVE_PARTS", 5)
    with pytest.raises(DataError, match="more than 5 parts"):
        read_deid(project(tmp_path, study()))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_of_one_name_are_refused(tmp_path: Path) -> None:
    path = project(tmp_path, study())
    with zipfile.ZipFile(path, "a") as more:
        more.writestr("metadata.xml", b"<metadata/>")
    with pytest.raises(DataError, match="two parts with the same name"):
        read_deid(path)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packing_that_cannot_be_bounded_is_refused(tmp_path: Path, packing: int) -> None:
    path = project(tmp_path, study(), parts={"metadata.xml": None})
    with zipfile.ZipFile(path, "a", packing) as more:
        more.writestr("metadata.xml", b"<metadata/>")
    with pytest.raises(DataError, match="packed with an unknown method"):
        read_deid(path)


@pytest.mark.parametrize("flag", [1, 1 << 5, 1 << 6], ids=["encrypted", "patched", "strongly encrypted"])
def test_a_flag_that_asks_for_more_than_reading_is_refused(tmp_path: Path, flag: int) -> None:
    path = project(tmp_path, study())
    data = bytearray(path.read_bytes())
    start = data.index(b"PK\x01\x02")  # the first entry of the directory: metadata.xml
    data[start + 8] |= flag
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"'metadata\.xml' in 'study\.deid' is"):
        read_deid(path)


ENTITIES = """<!DOCTYPE metadata [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">
<!ENTITY file SYSTEM "file:///etc/passwd">]><metadata><version>&b;&file;</version></metadata>"""


@pytest.mark.parametrize("encoding", ["ascii", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("part", ["metadata.xml", "project.xml", "input/definition.xml", "input/config.xml"])
def test_a_document_type_is_refused_in_every_part_and_encoding(tmp_path: Path, part: str, encoding: str) -> None:
    with pytest.raises(DataError, match="declares a document type"):
        read_deid(project(tmp_path, study(), parts={part: ENTITIES.encode(encoding)}))


def test_deep_nesting_is_read_or_refused_and_never_breaks(tmp_path: Path) -> None:
    deep = b"<config>" + b"<a>" * 100_000 + b"</a>" * 100_000 + b"</config>"
    assert read_deid(project(tmp_path, study(), parts={"input/config.xml": deep})).criteria == ()


# Criteria


@pytest.mark.parametrize(
    ("said", "criterion"),
    [
        ("5-anonymity", ("k", 5.0, "", "", None)),
        ("distinct-3-diversity for attribute 'x'", ("l", 3.0, "x", "distinct", None)),
        ("entropy-2.5-diversity for attribute 'x'", ("l", 2.5, "x", "entropy", None)),
        ("shannon-entropy-2.0-diversity for attribute 'it's'", ("l", 2.0, "it's", "entropy", None)),
        ("recursive-(4.0,3)-diversity for attribute 'x'", ("l", 3.0, "x", "recursive", 4.0)),
        ("0.2-closeness with equal distance for attribute 'x'", ("t", 0.2, "x", "equal", None)),
        ("1.0E-4-closeness with ordered distance for attribute 'a b'", ("t", 1e-4, "a b", "ordered", None)),
        ("0.5-closeness with hierarchical distance for attribute 'x'", ("t", 0.5, "x", "hierarchical", None)),
    ],
)
def test_a_sentence_of_arx_is_a_promise(said: str, criterion: tuple[object, ...]) -> None:
    found = parse_criterion(said)
    assert found is not None
    assert (found.letter, found.level, found.column, found.how, found.c) == criterion
    assert found.text == said


@pytest.mark.parametrize(
    "said",
    [
        "",
        "1-anonymity",
        "5-anonymity for all",
        "5-map (poisson)",
        "grassberger-entropy-2.0-diversity for attribute 'x'",
        "0.0-closeness with equal distance for attribute 'x'",
        "1.5-closeness with equal distance for attribute 'x'",
        "1.2.3-closeness with equal distance for attribute 'x'",
        "recursive-(0.0,3)-diversity for attribute 'x'",
        "1.0E999-closeness with equal distance for attribute 'x'",
        "distinct-0-diversity for attribute 'x'",
    ],
)
def test_another_sentence_or_one_that_no_policy_can_keep_is_none(said: str) -> None:
    assert parse_criterion(said) is None


def test_the_strictest_of_equal_promises_counts_and_what_does_not_fit_is_said() -> None:
    given = [
        Criterion("k", 3),
        Criterion("k", 7),
        Criterion("l", 2, "x", "distinct", text="l2"),
        Criterion("l", 3, "x", "distinct", text="l3"),
        Criterion("l", 3, "y", "entropy", text="entropy of y"),
        Criterion("t", 0.3, "y", "equal", text="t3"),
        Criterion("t", 0.2, "y", "equal", text="t2"),
        Criterion("t", 0.1, "y", "ordered", text="ordered t"),
        Criterion("t", 0.1, "age", "equal", text="t of age"),
    ]
    privacy, columns, notes = convert_criteria(given, ["x", "y"])
    assert privacy == {"k": 7}
    assert columns == {"x": {"l": 3}, "y": {"t": 0.2, "distance": "equal"}}
    assert [note.split(": ")[1] for note in notes] == ["entropy of y", "ordered t", "t of age"]


def test_without_a_k_two_is_put_in_and_said() -> None:
    privacy, _, notes = convert_criteria([Criterion("l", 2, "x", "recursive", 4.0)], ["x"])
    assert privacy == {"k": 2, "l_kind": "recursive", "c": 4.0}
    assert "k = 2 is set" in notes[0]
