"""Every option of `[privacy]` with every other: what is certified is what its definition says, counted plainly."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from battery.cases import get_needs
from everyday import first
from kinfold.models import AlphaK, BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, PSensitive, TCloseness
from kinfold.models.terms import ConfidentialColumn, Terms
from kinfold.policy.privacy import Privacy
from kinfold.policy.registry import generalizes
from kinfold.policy.registry import list_method_names as methods
from kinfold.tables.tally import Scopes, encode_values
from kinfold.verification import judge_people
from ledger import SCALE, cases, tally_up
from reference import promises

MODELS: dict[str, dict[str, Any]] = {
    "t": {"t": 0.6},
    "distinct": {"l": 2},
    "entropy": {"l": 1.6, "l_kind": "entropy"},
    "recursive": {"l": 2, "l_kind": "recursive", "c": 2.0},
    "p": {"p": 2},
    "alpha": {"alpha": 0.75},
    "beta": {"beta": 1.5},
    "enhanced": {"beta": 1.8, "beta_kind": "enhanced"},
    "delta": {"delta": 2.5},
    "average": {"average_risk": 0.2},
    "share": {"risk_share": {"above": 0.3, "most": 0.2}},
    "combinations": {"combinations": {"size": 1, "confidence": 0.9}},
    "population": {"population": {"size": 500, "k": 9, "alpha": 0.2}},
}
WEIGHTS = {"weighted": {"weighted": True}, "risk": {"individual_risk": 0.15}}
HOUSEHOLDS = {"household": {"household": "hid"}, "household_k": {"household": "hid", "household_k": 2}}
OPTIONS = {**MODELS, **WEIGHTS, "unit": {"unit": "pid"}, "joint": {"joint": True}, **HOUSEHOLDS}
KINDS = {"ill": "equal", "wage": "ordered"}
PARTITIONERS = [name for name in methods() if not generalizes(name) and not get_needs(name)]
GENERALIZERS = [name for name in methods() if generalizes(name)]
BY_RECORD = ["local-suppression", "mingen-cell"]  # which merge classes for people
PAIRS = [pair for pair in combinations(OPTIONS, 2) if not {*OPTIONS[pair[0]]} & {*OPTIONS[pair[1]]}]
REFUSED = [pair for pair in PAIRS if {*pair} & {*HOUSEHOLDS} and {*pair} & {"average", "share"}]
OF_ROWS = {"combinations": {"unit", "joint", *HOUSEHOLDS}, "population": {"unit", *HOUSEHOLDS}}
OF_ROWS |= {name: {"unit", "joint", "combinations"} for name in WEIGHTS}
CONFLICTS = [pair for pair in PAIRS for name, others in OF_ROWS.items() if name in pair and others & {*pair}]
EVERY = (
    [(name,) for name in OPTIONS]
    + [pair for pair in PAIRS if pair not in [*REFUSED, *CONFLICTS]]
    + [("unit", "joint", name) for name in MODELS if name not in OF_ROWS]
    + [("weighted", "t", name) for name in ("distinct", "entropy", "recursive", "beta")]
)


def merge(every: list[tuple[str, ...]], most: int = 3) -> list[tuple[str, ...]]:
    """Return fewer requests, of up to `most` options, in which the same options meet."""
    usable = {frozenset(each) for each in every}
    merged: list[set[str]] = []
    for options in sorted(every, key=len, reverse=True):
        groups = sorted(merged, key={*options}.issubset, reverse=True)
        for group in groups:
            union = group | {*options}
            if len(union) <= most and {frozenset(pair) for pair in combinations(union, 2)} <= usable:
                group |= union
                break
        else:
            merged.append({*options})
    return [tuple(name for name in OPTIONS if name in group) for group in merged]


REQUESTS = EVERY if SCALE > 1 else merge(EVERY)  # the long form asks for no more than two at a time
PEOPLE = {"unit", "joint"}
BEYOND_ROWS = {*PEOPLE, *WEIGHTS}


EVENTS = {"events_known", "days_known"}  # tried with every other option in test_known_events


def test_every_option_is_tried() -> None:
    assert {"k", *EVENTS, *(key for asked in OPTIONS.values() for key in asked)} == {*Privacy.model_fields}
    assert all(any({*options} <= {*request} for request in REQUESTS) for options in EVERY)


def visits(seed: int, n: int = 72) -> pd.DataFrame:
    """Rows of people, each of whom has some: often the same illness again."""
    chance = np.random.default_rng(seed)
    person = chance.integers(0, n // 3, n)
    again = chance.random(n) < 0.6
    ill = np.where(again, np.array(["flu", "hiv"])[person % 2], chance.choice(["flu", "hiv", "cold"], n))
    home = person // 3
    age, town = chance.integers(20, 60, n), chance.choice(["a", "b"], n)[home]
    table = {"pid": person, "hid": home, "age": age, "town": town, "ill": ill, "wage": chance.integers(1, 3, n)}
    return pd.DataFrame(table | {"w": chance.choice([1.0, 2.5, 9.0], n)})


def policy(asked: dict[str, Any], method: str) -> dict[str, Any]:
    age = {"hierarchy": {"intervals": [10, 20, 40]}} if generalizes(method) else {}
    columns: dict[str, Any] = {
        "pid": {"role": "identifier"},
        "hid": {"role": "identifier"},
        "age": {"role": "quasi", **age},
        "town": {"role": "quasi"},
    }
    columns |= {
        "w": {"role": "weight"},
        "ill": {"role": "confidential"},
        "wage": {"role": "confidential", "type": "continuous"},
    }
    if method == "local-suppression":
        columns["age"] = {"role": "quasi"}
    return {"privacy": {"k": 2, **asked}, "method": {"name": method}, "columns": columns}


@pytest.mark.parametrize("options", first(REQUESTS, 9))
def test_what_is_certified_is_what_the_definitions_say(options: tuple[str, ...], tmp_path: Path) -> None:
    asked = {key: value for name in options for key, value in OPTIONS[name].items()}
    others = [] if {*HOUSEHOLDS} & {*options} else BY_RECORD if BEYOND_ROWS & {*options} else GENERALIZERS
    usable = PARTITIONERS + others
    made = 0
    for seed in range(cases(1, 12)):
        table = visits(seed)
        method = usable[(seed + REQUESTS.index(options)) % len(usable)]
        request = policy(asked, "mdav" if method == "univariate" else method)
        try:
            release = kinfold.anonymize(table, request)
        except kinfold.Unreachable:
            continue
        made += 1
        released = release.frame.assign(pid=table.pid, hid=table.hid, w=table.w)
        assert "household" not in asked or released.groupby("hid").town.nunique().max() == 1
        rows = released.to_dict("records")
        expected = promises.found(rows, ["age", "town"], KINDS, asked)
        certified = {_place(each): each.found for each in release.verdict.all_findings}
        assert certified == pytest.approx(expected)
        assert release.verdict.holds
        release.frame.to_csv(tmp_path / "released.csv", index=False)
        assert kinfold.verify(tmp_path / "released.csv", request, twice=True).holds  # by both checkers
    tally_up("combinations of promises", made)
    assert made


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("seed", range(cases(2, 30)))
def test_joint_parts_share_values_however_they_are_written(seed: int, form: str, tmp_path: Path) -> None:
    """To whoever knows that a wage is 1, it makes no difference whether a row has 1, 1.0 or +1."""
    table, chance = visits(seed, 120), np.random.default_rng(seed)
    written = {1: ["1", "1.0", "+1"], 2: ["2", "2.00"]}
    table.assign(wage=[chance.choice(written[wage]) for wage in table.wage]).to_csv(tmp_path / "t.csv", index=False)
    asked = {"l": 1.2, "l_kind": "entropy", "t": 0.9, "beta": 9.0, "unit": "pid", "joint": True}
    output = {"output": {"surrogate": True, "format": form}}
    kinfold.anonymize(tmp_path / "t.csv", policy(asked, "mdav") | output).save(tmp_path / "out")
    file = tmp_path / "out" / "public" / f"release.{form}"
    released = pd.read_csv(file, dtype=str) if form == "csv" else pd.read_parquet(file)
    rows = released.assign(wage=released.wage.astype(float)).to_dict("records")
    verdict = kinfold.verify(tmp_path / "out", twice=True)
    certified = {_place(each): each.found for each in (*verdict.findings, *verdict.people)}
    assert certified == pytest.approx(promises.found(rows, ["age", "town"], KINDS, asked))


@pytest.mark.parametrize("method", sorted({*GENERALIZERS} - {*BY_RECORD}))
@pytest.mark.parametrize("option", sorted(PEOPLE))
def test_methods_that_cannot_keep_a_promise_refuse_it(method: str, option: str) -> None:
    with pytest.raises(kinfold.PolicyError, match="cannot merge classes"):
        kinfold.anonymize(visits(0), policy({**MODELS["distinct"], **OPTIONS[option]}, method))


@pytest.mark.parametrize("options", REFUSED, ids="-".join)
def test_promises_about_all_classes_are_refused_for_households(options: tuple[str, ...]) -> None:
    asked = {key: value for name in options for key, value in OPTIONS[name].items()}
    with pytest.raises(kinfold.PolicyError, match="they count all classes"):
        kinfold.anonymize(visits(0), policy(asked, "mdav"))


@pytest.mark.parametrize("options", CONFLICTS, ids="-".join)
def test_promises_about_rows_are_refused_for_people_and_parts_of_classes(options: tuple[str, ...]) -> None:
    asked = {key: value for name in options for key, value in OPTIONS[name].items()}
    with pytest.raises(kinfold.PolicyError, match=r"counts? (rows of classes, not people|the records)"):
        kinfold.anonymize(visits(0), policy(asked, "mdav"))


def _place(finding: Any) -> tuple[str, str | None, str]:
    words = next(
        (
            each
            for each in (promises.KNOWING, promises.PEOPLE, promises.HOUSEHOLDS, promises.WEIGHTS)
            if finding.promise.endswith(each)
        ),
        "",
    )
    return finding.model, finding.column, words


@settings(max_examples=cases(60, 400), deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 2)),
        min_size=1,
        max_size=14,
    ),
    joint=st.booleans(),
    kind=st.sampled_from(["distinct", "entropy", "recursive"]),
)
def test_people_are_judged_by_the_definition_whatever_they_hold(
    rows: list[tuple[int, int, str, int]], joint: bool, kind: str
) -> None:
    labels, person, ill, wage = (np.array(column) for column in zip(*rows, strict=True))
    columns = {"ill": encode_values(ill), "wage": encode_values(wage)}
    known = {name: code for name, (_, code) in columns.items()} if joint else {}
    models = [KAnonymity(2)]
    for name, distance in KINDS.items():
        models += [
            TCloseness(0.5, name, distance),
            LDiversity(2, name, kind, 2.0),
            PSensitive(2, name),
            AlphaK(0.5, name),
            BetaLikeness(0.5, name, "enhanced" if joint else "basic"),
            DeltaDisclosure(1, name),
        ]
    terms = Terms(
        ("q",),
        (ConfidentialColumn("ill", "nominal", "equal"), ConfidentialColumn("wage", "continuous", "ordered")),
        (),
        (),
        models,
    )
    labels = np.unique(labels, return_inverse=True)[1]
    judged = judge_people(labels, Scopes(columns, encode_values(person)[1], known), terms)
    plain = [dict(zip(("q", "pid", "ill", "wage"), row, strict=True)) for row in rows]
    asked = {"t": 0.5, "l": 2, "l_kind": kind, "c": 2.0, "p": 2, "alpha": 0.5, "unit": "pid", "joint": joint}
    asked |= {"beta": 0.5, "beta_kind": "enhanced" if joint else "basic", "delta": 1}
    expected = {place: value for place, value in promises.found(plain, ["q"], KINDS, asked).items() if place[2]}
    assert {_place(each): each.found for each in judged} == pytest.approx(expected)
