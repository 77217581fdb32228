"""Coming from µ-ANT and sdcMicro: settings become a policy for the same table, or it is said what to do instead.

The files are written here as the tools' public sources write and read them; none was made by the tools themselves.
"""

import gzip
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pyarrow import csv

from command import run
from kinfold.convert.sdc_micro import read_sdc_micro
from kinfold.demo import make_patients
from other_tools import MU_ANT, REPORT, SCRIPT


def converted(folder: Path, name: str, text: str) -> tuple[str, dict[str, Any]]:
    """Convert a file, and return what was said and the policy."""
    (folder / name).write_text(text, "utf-8")
    ran = run("convert", folder / name, "--out", folder / "study").ok()
    assert [path.name for path in (folder / "study").iterdir()] == ["policy.toml"]
    return ran.out, tomllib.loads((folder / "study/policy.toml").read_text("utf-8"))


def table(folder: Path, *, slashes: bool = False) -> Path:
    """Write a part of the demo table, dates as µ-ANT has them if asked."""
    path = folder / "patients.csv"
    csv.write_csv(make_patients().slice(0, 300), path)
    if slashes:
        path.write_text("\n".join(map(_slashed, path.read_text("utf-8").splitlines())) + "\n", "utf-8")
    return path


def _slashed(line: str) -> str:
    fields = line.split(",")
    fields[7] = fields[7].replace("-", "/")
    return ",".join(fields)


@pytest.mark.compiled
def test_settings_of_mu_ant_become_a_policy_that_runs(tmp_path: Path) -> None:
    said, policy = converted(tmp_path, "properties.xml", MU_ANT)
    assert policy["privacy"] == {"k": 3, "t": 0.25}
    assert policy["source"] == {"dates": "%Y/%m/%d"}
    columns = policy["columns"]
    assert [columns[name]["role"] for name in ("name", "age", "charge", "disease")] == [
        *("identifier", "quasi-identifier", "confidential", "other")
    ]
    assert columns["income"] == {"role": "identifier"}
    assert [columns[name]["type"] for name in ("age", "sex", "admission")] == ["continuous", "nominal", "date"]
    assert "'zip': its ontology is not read" in said
    assert "'education': µ-ANT has no order" in said
    data = table(tmp_path, slashes=True)
    run("anonymize", data, "--policy", tmp_path / "study/policy.toml", "--out", tmp_path / "out", "--json").ok()
    assert run("verify", tmp_path / "out/public").code == 0


@pytest.mark.compiled
def test_a_report_of_sdcmicro_becomes_local_suppression(tmp_path: Path) -> None:
    said, policy = converted(tmp_path, "report.html", REPORT)
    assert policy["privacy"] == {"k": 2}
    assert "k = 2 is set" in said
    assert policy["method"]["name"] == "local-suppression"
    roles = {name: column["role"] for name, column in policy["columns"].items()}
    assert roles == {
        **dict.fromkeys(("sex", "education", "marital_status"), "quasi-identifier"),
        "disease": "confidential",
        "charge": "weight",
        "name": "identifier",
    }
    options = ("--policy", tmp_path / "study/policy.toml", "--others", "drop", "--out", tmp_path / "out")
    run("anonymize", table(tmp_path), *options).ok()
    assert run("verify", tmp_path / "out/public").code == 0


def test_a_script_of_sdcmicro_says_k_and_its_key_variables(tmp_path: Path) -> None:
    said, policy = converted(tmp_path, "protect.R", SCRIPT)
    assert policy["privacy"] == {"k": 4}
    assert policy["method"]["name"] == "auto"
    columns = policy["columns"]
    assert {name for name in columns if columns[name]["role"] == "quasi-identifier"} == {
        "sex",
        "education",
        "age",
        "income",
    }
    assert columns["income"]["type"] == "continuous"
    assert columns["disease"] == {"role": "confidential", "l": 2}
    assert columns["marital_status"]["role"] == "other"
    assert "a PRAM variable that the script does not pass to pram; it is released as it is" in said
    assert "separately; kinfold protects all together" in said


def test_the_treatments_of_a_script_become_keys_of_columns(tmp_path: Path) -> None:
    calls = """
sdc <- pram(sdc, variables = c("marital_status"), pd = 0.9)
sdc <- pram(sdc, variables = "sex")
sdc <- addNoise(sdc, noise = 20, method = "additive", variables = "charge")
sdc <- rankSwap(sdc, variables = c("income"), P = 10)
sdc <- topBotCoding(sdc, value = 85, replacement = 90, kind = "top", column = "age")
sdc <- localSuppression(sdc, k = 3, importance = c(2, 1))
sdc <- shuffle(sdc, form = a ~ b)
sdc <- addNoise(sdc, noise = 20, method = "ROMM", variables = "charge")
"""
    said, policy = converted(tmp_path, "protect.R", SCRIPT + calls)
    columns = policy["columns"]
    assert columns["marital_status"] == {"role": "other", "perturb": {"pram": 0.9}}
    assert columns["charge"] == {"role": "other", "perturb": {"noise": 0.2}}
    assert columns["income"]["perturb"] == {"rank_swap": 10}
    assert columns["age"]["top"] == 85
    assert (columns["sex"]["weight"], columns["education"]["weight"]) == (1, 2)
    assert "perturb" not in columns["sex"]
    for note in (
        "'sex': PRAM of a key variable",
        "addNoise by 'ROMM'",
        "shuffle has no counterpart",
        "not the replace",
    ):
        assert note in said
    options = ("--policy", tmp_path / "study/policy.toml", "--others", "drop", "--out", tmp_path / "out")
    for key in ("age", "income"):
        options = (*options, "--set", f"columns.{key}.missing=separate")
    run("anonymize", table(tmp_path), *options).ok()
    assert run("verify", tmp_path / "out/public").code == 0


@pytest.mark.parametrize(
    ("calls", "privacy", "told"),
    [
        (
            ["kAnon(sdc, importance = c(1, 2), k = c(3, 4), combs = c(2, 1))"],
            {"k": 4, "combinations": {"size": 2}},
            "combs",
        ),
        (["kAnon(sdc, k = 3, combs = 2)", "kAnon(sdc, k = 5)"], {"k": 5}, "combs is left out"),
        (
            ["globalRecode(sdc, column = 'age', breaks = c(1, 2))"],
            {"k": 2},
            "globalRecode is left out: give the column",
        ),
    ],
)
def test_sizes_of_combinations_become_a_promise(calls: list[str], privacy: dict[str, Any], told: str) -> None:
    script = "".join(f"sdc <- {call}\n" for call in ['createSdcObj(dat, keyVars = c("age", "sex"))', *calls])
    read = read_sdc_micro(script, "protect.R")
    assert read.sections["privacy"] == privacy
    assert any(note.startswith(told) for note in read.notes)


def test_regions_that_a_script_exchanges() -> None:
    call = 'recordSwap(sdc, hid = "hid", hierarchy = c("land", "town"), similar = c("size"), swaprate = 0.1)'
    read = read_sdc_micro(f'createSdcObj(dat, keyVars = c("age", "sex"))\n{call}', "protect.R")
    assert read.columns["land"] == read.columns["town"]
    assert read.columns["town"] == {"role": "other", "perturb": {"record_swap": 0.1, "similar": ["size"]}}
    assert "recordSwap exchanges the regions of the households of privacy.household: set it" in read.notes


def test_values_that_a_script_groups_and_columns_that_it_removes() -> None:
    calls = 'groupAndRename(sdc, var = "age", before = c("1", "2"), after = "low"); removeDirectID(sdc, var = "name")'
    columns = read_sdc_micro(f'createSdcObj(dat, keyVars = c("age", "sex"))\n{calls}', "protect.R").columns
    assert columns["age"]["map"] == {"1": "low", "2": "low"}
    assert columns["name"] == {"role": "identifier"}


@pytest.mark.parametrize(
    ("weights", "calls", "risk", "told"),
    [
        (', weightVar = "w"', ["0.02", "0.1"], 0.02, "holds for every record"),
        ("", ["0.02"], None, "without weights a risk of at most 0.02 is k = 1 / 0.02"),
        (', weightVar = "w"', ["limit"], None, "its threshold is not a number"),
    ],
)
def test_a_threshold_on_the_risk_becomes_a_promise(
    weights: str, calls: list[str], risk: float | None, told: str
) -> None:
    script = f'sdc <- createSdcObj(dat, keyVars = c("age", "sex"){weights})\n'
    script += "".join(f'sdc <- localSupp(sdc, threshold = {call}, keyVar = "age")\n' for call in calls)
    read = read_sdc_micro(script, "protect.R")
    assert read.sections["privacy"].get("individual_risk") == risk
    assert told in " ".join(read.notes)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("sdc.rds", gzip.compress(b"X", mtime=0), "write a report with report(sdc)"),
        ("builder.ahs", b"\xac\xed\x00\x05sr", "export the hierarchy as CSV"),
        ("data.rda", b"AGE 1 3 999\n  <RECODABLE>\n  <IDLEVEL> 1\n", "kinfold profile DATA --write-policy"),
        ("notes.txt", b"nothing", "an ARX project (.deid), µ-ANT settings"),
        ("other.xml", b"<project><name>x</name></project>", "does not describe attributes"),
        (
            "bomb.xml",
            b'<!DOCTYPE a [<!ENTITY b "c">]><schema><attribute attribute_type="&b;"/></schema>',
            "do not trust",
        ),
        ("indexed.R", b"createSdcObj(dat, keyVars = c(1, 2))", 'write their names: keyVars = c("age", "sex")'),
        ("empty.R", b"createSdcObj(dat)", "names no variables"),
        (
            "odd.xml",
            MU_ANT.replace('"numeric_discrete"', '"number"', 1).encode(),
            "numeric_discrete, numeric_continuous",
        ),
        ("absent.xml", None, "check the path"),
    ],
)
def test_what_is_not_read_is_told_with_what_to_do(name: str, content: bytes | None, told: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ran = run("convert", tmp_path / name, "--out", tmp_path / "study").fails(3)
    assert told in " ".join(ran.err.split())
    assert not (tmp_path / "study").exists()
