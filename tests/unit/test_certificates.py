"""Certificates: whatever is changed afterwards, in the release or in the certificate, is noticed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kinfold
from command import run, text
from kinfold import checker
from kinfold.errors import DataError, KinfoldError, VerifyError
from kinfold.hierarchies import build_from_tree
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.models.terms import ConfidentialColumn, Terms
from kinfold.release.certificate import Certificate, certify, read_terms
from kinfold.release.inspection import check_folder, is_sorted

TABLE = """\
name;age;zip;disease;note
Ada;31;02138;flu;a
Bob;32;02138;flu;b
Cid;33;02139;cold;c
Dan;61;02139;angina;d
Eve;62;02141;cold;e
Fay;63;02141;flu;f
"""
POLICY = {
    "privacy": {"k": 3},
    "method": {"name": "mdav", "seed": 424242},
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "average": "generalize"},
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": 5}, "average": "generalize"},
        "disease": {"role": "confidential", "hierarchy": {"tree": {"lung": ["flu", "cold"], "heart": ["angina"]}}},
        "note": {"role": "other"},
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    kinfold.anonymize(text(folder, "very_private_source.csv", TABLE), POLICY).save(folder / "out")
    return folder / "out"


@pytest.fixture
def public(made: Path, tmp_path: Path) -> Path:
    """The public folder, alone."""
    return Path(shutil.copytree(made / "public", tmp_path / "public"))


def test_a_release_is_verified_from_its_public_folder_alone_or_the_folder_above(public: Path, made: Path) -> None:
    assert check_folder(made).holds
    verdict = check_folder(public)
    assert verdict.holds
    assert (verdict.k, verdict.records, verdict.classes) == (3, 6, 2)
    assert run("verify", public).code == 0
    assert run("verify", public, "--json").json["holds"]


def fails(public: Path) -> str:
    ran = run("verify", public)
    assert ran.code in (3, 5), ran.err
    assert "fix: " in ran.err
    return ran.err


def test_a_changed_cell_of_any_column_is_noticed(public: Path) -> None:
    file = public / "release.csv"
    lines = file.read_text().splitlines()
    for row in (1, 6):
        for place in range(4):
            cells = lines[row].split(";")
            cells[place] = "x"
            file.write_text("\n".join([*lines[:row], ";".join(cells), *lines[row + 1 :]]) + "\n")
            assert "was changed after its certificate was made" in fails(public)


@pytest.mark.parametrize(
    "change", [lambda t: t + "\n", lambda t: t.replace("note", "nota"), lambda t: t.split("\n", 2)[2], lambda _: ""]
)
def test_a_row_or_column_too_many_or_too_few_is_noticed(public: Path, change: Any) -> None:
    file = public / "release.csv"
    file.write_text(change(file.read_text()))
    fails(public)


def test_a_release_that_is_gone_is_missed(public: Path) -> None:
    (public / "release.csv").unlink()
    assert "'release.csv' is not in" in fails(public)


def test_every_line_of_the_certificate_counts(public: Path) -> None:
    file = public / "certificate.json"
    lines = file.read_text().splitlines()
    for number, line in enumerate(lines):
        kept = lines[:number] + lines[number + 1 :]
        if line.strip() not in ("{", "}", "[", "]", "},", "],"):
            file.write_text("\n".join(kept))
            fails(public)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def test_every_value_of_the_certificate_counts(public: Path) -> None:
    file = public / "certificate.json"
    whole = file.read_text()
    for path in leaves(json.loads(whole)):
        content = json.loads(whole)
        inner = content
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = "x" if isinstance(inner[path[-1]], str) else inner[path[-1]] + 1
        file.write_text(json.dumps(content))
        assert "was changed after it was made" in fails(public), path


@pytest.mark.parametrize("content", ["", "[]", "null", "{}", "5", '{"checksum": 1}', "\xff", None])
def test_a_certificate_that_is_none(public: Path, content: str | None) -> None:
    (public / "certificate.json").unlink()
    if content is None:
        assert "no certificate can be read" in fails(public)
        return
    (public / "certificate.json").write_bytes(content.encode("latin-1"))
    assert run("verify", public).code in (3, 5)


def test_figures_are_computed_again_even_where_checksums_agree_and_may_differ_in_the_last_digits(public: Path) -> None:
    content = json.loads((public / "certificate.json").read_text())
    content.pop("checksum")
    content["found"]["t"]["disease"] *= 1 + 1e-13
    (public / "certificate.json").write_text(Certificate(content).text())
    assert check_folder(public).holds
    content["found"]["k"] = 4
    (public / "certificate.json").write_text(Certificate(content).text())
    with pytest.raises(VerifyError, match="are not those of the file"):
        check_folder(public)


def test_nothing_public_speaks_of_the_original(made: Path) -> None:
    audit = json.loads((made / "internal" / "audit.json").read_text())
    secrets = [audit["source"]["sha256"], "very_private_source", "424242", "Ada", "02138", "31;"]
    for file in (made / "public").iterdir():
        for secret in secrets:
            assert secret not in file.read_text(), (file.name, secret)


def test_a_confidential_value_of_records_left_out_is_not_in_the_certificate(tmp_path: Path) -> None:
    frame = pa.table({"age": [1, 2, None, 3], "d": ["flu", "flu", "smallpox", "cold"]})
    columns = {
        "age": {"role": "key", "missing": "drop"},
        "d": {"role": "confidential", "hierarchy": {"mask": 3}},
    }
    release = kinfold.anonymize(frame, {"privacy": {"k": 3}, "method": {"name": "mdav"}, "columns": columns})
    release.save(tmp_path / "out")
    assert "smallpox" not in (tmp_path / "out" / "public" / "certificate.json").read_text()
    assert check_folder(tmp_path / "out").holds


def test_terms_come_back_from_a_certificate(made: Path) -> None:
    hierarchy = build_from_tree({"lung": ["flu"], "heart": ["angina"]})
    release = kinfold.anonymize(
        pa.table({"a": [1, 2, 3], "d": ["flu", "flu", "angina"]}), quasi=["a"], confidential=["d"], k=3
    )
    models = (KAnonymity(3), LDiversity(2, "d"), TCloseness(0.5, "d", "hierarchical", hierarchy))
    terms = Terms(("a",), (ConfidentialColumn("d", "nominal", "hierarchical", None, hierarchy),), (), (), models)
    verdict = type(release.verdict)(tuple(m for m in release.verdict.findings for _ in models), 3, 1, 3)
    told = Certificate.read(certify(release.policy, terms, verdict, {"release": {"file": "x"}}, "mdav").text())
    again = read_terms(told)
    assert (again.quasi, again.other, again.removed) == (("a",), (), ())
    assert [type(model) for model in again.models] == [KAnonymity, LDiversity, TCloseness]
    assert again.models[:2] == models[:2]
    assert again.confidential[0].hierarchy is not None
    assert again.confidential[0].hierarchy.labels.tolist() == hierarchy.labels.tolist()


def test_a_certificate_says_whether_rows_were_sorted(made: Path, tmp_path: Path) -> None:
    assert is_sorted(made / "public" / "release.csv")
    assert not is_sorted(made / "public" / "other.csv")
    assert not is_sorted(tmp_path / "release.csv")


def test_errors_about_certificates_have_their_codes() -> None:
    with pytest.raises(DataError):
        Certificate.read("nonsense")
    changed = json.loads(Certificate({"format": 2, "a": 1}).text()) | {"a": 2}
    with pytest.raises(KinfoldError) as caught:
        Certificate.read(json.dumps(changed))
    assert caught.value.exit_code == 5


WRONG: list[Any] = [None, 10**400, -1, 1e308, [], ["x"], {}, {"x": 1}, "x", "", True, "9" * 400]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key and every item of a certificate."""
    if at and at != ("checksum",):
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from places(each, (*at, key))


def spoilt(content: dict[str, Any], at: tuple[Any, ...], *value: Any) -> str:
    """A certificate with something else at a place, or nothing, and a checksum that fits."""
    changed = json.loads(json.dumps({key: each for key, each in content.items() if key != "checksum"}))
    holder = changed
    for key in at[:-1]:
        holder = holder[key]
    del holder[at[-1]]
    if value:
        if isinstance(holder, dict):
            holder[at[-1]] = value[0]
        else:
            holder.insert(at[-1], value[0])
    return Certificate(changed).text()


@pytest.mark.slow
def test_a_certificate_that_holds_anything_else_is_answered_with_a_message(public: Path) -> None:
    file = public / "certificate.json"
    content = json.loads(file.read_text())
    asked = [(at, *value) for at in places(content) for value in [(), *((each,) for each in WRONG)]]
    for turn, change in enumerate(asked):
        file.write_text(spoilt(content, *change))
        assert isinstance(checker.check_release(public)["holds"], bool)
        if turn % 9 == 0:  # a table is read each time
            with suppress(DataError, VerifyError):  # a change that says nothing else may pass
                check_folder(public)


@pytest.mark.parametrize(
    ("at", "value"), [(("release", "separator"), ()), (("promises", 0, "parameters", "k"), (10**400,))]
)
def test_what_a_certificate_lacks_or_exaggerates_ends_the_command_with_3(public: Path, at: Any, value: Any) -> None:
    file = public / "certificate.json"
    file.write_text(spoilt(json.loads(file.read_text()), at, *value))
    done = run("verify", public, "--twice")
    assert done.code == 3
    assert "not of the expected shape" in done.err
