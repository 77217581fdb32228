"""First lines of CSV files: names are shown, records never."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import run, text
from kinfold.rows.header import values_in

NAMES = {
    "plain": ("name,age,sex", "Ann,34,f", "Ben,51,m"),
    "one row": ("name,age,sex", "Ann,34,f"),
    "no row": ("name,age,sex",),
    "years of a wide table": ("country,2019,2020,2021", "Chile,17.2,18,19.9", "Peru,30,31.5,32"),
    "decades of a wide table": ("country,1990,2000,2010", "Chile,17,18,19", "Peru,30,31,32"),
    "dates above counts of words": ("city,2024-01-01", "Ulm,low", "Bonn,high"),
    "numbered columns": ("x1,x2,y10", "0.1,3,a", "0.7,4,b"),
    "a column named like one of its values": ("smoker,age,sex", "smoker,34,f", "never,51,m"),
    "a header written twice": ("name,sex", "Ann,f", "name,sex", "Ben,m"),
    "numbers above nothing": ("name,1", "Ann,", "Ben,"),
    "spaces": ("date of birth, place ", "1990-01-01,Ulm"),
}
RECORDS = {
    "numbers": (("Ann,34,02138", "Ben,51,02139"), (2, 3)),
    "numbers among missing ones": (("Ann,34", "Ben,NA", "Cid,51"), (2,)),
    "decimals with a comma": (("Ann;3,5", "Ben;4,25"), (2,)),
    "dates": (("Ann,1990-01-01", "Ben,1991-12-31"), (2,)),
    "dates in words": (("Ann,3 Jan 2024", "Ben,14 Feb 2024"), (2,)),
    "times": (("Ann,10:20", "Ben,11:30"), (2,)),
    "telephones": (("Ann,+49 171 5", "Ben,+49 172 6"), (2,)),
    "codes": (("P00123,flu", "P00124,cold"), (1,)),
    "addresses": (("ann@x.org,flu", "ben@y.org,cold"), (1,)),
    "years of birth": (("Ann,1984,1999", "Ben,1985,2001"), (2, 3)),
    "words that are found again": (("Ann,f,flu", "Ben,m,flu", "Cid,f,cold"), (2, 3)),
    "one word that is found again": (("Ann,f", "Ben,m", "Cid,f"), (2,)),
    "a single column": (("flu", "cold", "flu"), (1,)),
    "a number that is none": (("Ann,nan", "Ben,3.5"), (2,)),
}


def rows_of(lines: tuple[str, ...]) -> list[list[str]]:
    return [line.split(";" if ";" in line else ",") for line in lines]


@pytest.mark.parametrize("lines", NAMES.values(), ids=NAMES)
def test_a_line_of_names_is_a_header(lines: tuple[str, ...]) -> None:
    first, *rows = rows_of(lines)
    assert values_in(first, rows) == ()


@pytest.mark.parametrize(("lines", "places"), RECORDS.values(), ids=RECORDS)
def test_a_record_is_no_header(lines: tuple[str, ...], places: tuple[int, ...]) -> None:
    first, *rows = rows_of(lines)
    assert values_in(first, rows) == places


RAW = "Xanthippe,34,f,02138\nZebulon,51,m,02139\nXerxes,51,f,02139\n"
COMMANDS = {
    "profile": ("profile", "DATA"),
    "profile as JSON": ("profile", "DATA", "--json"),
    "anonymize": ("anonymize", "DATA", "--quasi", "age,sex", "-k", "2", "--out", "OUT"),
    "a name that is nearly there": ("anonymize", "DATA", "--quasi", "Xantippe,3", "-k", "2", "--out", "OUT"),
    "as JSON, with values": ("anonymize", "DATA", "--quasi", "z", "-k2", "--out", "OUT", "--json", "--show-values"),
    "verify": ("verify", "DATA", "--policy", "POLICY"),
    "measure": ("measure", "GOOD", "DATA", "--policy", "POLICY"),
    "lattice": ("lattice", "DATA", "--policy", "POLICY"),
    "compare": ("compare", "DATA", "--policy", "POLICY", "--out", "OUT"),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("raw", [RAW, RAW.replace("34", "f"), RAW.replace("34", "")], ids=["plain", "twice", "empty"])
def test_no_message_shows_a_record_of_a_file_without_a_header(
    command: tuple[str, ...], raw: str, tmp_path: Path
) -> None:
    places = {
        "DATA": text(tmp_path, "raw.csv", raw),
        "GOOD": text(tmp_path, "good.csv", "age,sex\n34,f\n51,m\n51,f\n"),
        "POLICY": text(
            tmp_path, "p.toml", '[privacy]\nk=2\n[columns.age]\nrole="quasi"\n[columns.sex]\nrole="quasi"\n'
        ),
        "OUT": tmp_path / "out",
    }
    ran = run(*(places.get(word, word) for word in command))
    assert ran.code == (4 if command[0] == "compare" else 3)  # no setting of a comparison is possible
    assert "first line does not look like a header" in ran.err
    said = ran.out + ran.err.replace(str(tmp_path), "").replace("2019", "")
    assert not any(value in said for value in ("Xanthippe", "34", "02138", "'f'"))
    assert not (tmp_path / "out" / "public").exists()


@pytest.mark.slow
def test_a_name_that_the_policy_knows_makes_it_a_header(tmp_path: Path) -> None:
    wide = text(tmp_path, "wide.csv", "city,2019\n" + "Ulm,5\nBonn,6\n" * 4)
    assert run("profile", wide).code == 3
    ran = run("anonymize", wide, "--quasi", "2019", "--others", "drop", "-k", "2", "--out", tmp_path / "out", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["k"] >= 2
    assert run("verify", tmp_path / "out").code == 0  # the certificate names its columns
