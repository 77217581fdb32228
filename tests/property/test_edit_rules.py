"""Edit rules: read and judged like their plain twins, counted on both sides, and kept where that is asked for."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kinfold
from command import run
from everyday import first
from kinfold.policy.binding import bind
from kinfold.policy.model import Policy
from kinfold.policy.registry import list_methods
from kinfold.policy.rule_checks import evaluate_rule, read_values
from kinfold.policy.rules import RuleError, parse_rule
from kinfold.tables.duckdb.engine import DuckDB
from ledger import tally_up
from reference.edit_rules import ORDER, Drawn, rows, rules
from small_tables import SMALL

FULL: dict[str, Any] = {"a": 1, "b": 2, "the c": 0.5, "d": date(2024, 2, 29), "e": date(2024, 3, 1), "level": "mid"}
TYPES = {"a": pa.int64(), "b": pa.int64(), "the c": pa.float64(), "d": pa.date32(), "e": pa.date32()}


@settings(max_examples=40, deadline=None)
@given(rules, st.lists(rows, min_size=3, max_size=12))
def test_rules_are_judged_like_their_twins(rule: Drawn, drawn: list[dict[str, Any]]) -> None:
    held = [*drawn, {**FULL, "town": "x"}]  # a column of nothing but nulls has no type
    table = pa.table({name: pa.array([row[name] for row in held], TYPES.get(name, pa.string())) for name in held[0]})
    columns: dict[str, Any] = {name: {"role": "other"} for name in table.column_names}
    columns["level"] |= {"type": "ordinal", "order": list(ORDER)}
    columns["one"] = {"role": "quasi", "type": "nominal"}
    policy = Policy.parse({"privacy": {"k": 2}, "columns": columns, "rules": [{"check": rule.text}]})
    with DuckDB(SMALL) as engine:
        frame = engine.read(table.append_column("one", pa.array(["1"] * len(held))))
        try:
            bound = bind(policy, engine.schema(frame))
        except kinfold.PolicyError as error:
            assume("names no column" not in str(error))
            raise
        found = evaluate_rule(bound.rules[0].tree, read_values(bound, engine, frame))
    wanted = [rule.of(row) for row in held]
    assert np.broadcast_to(found.true, len(held)).tolist() == [answer is True for answer in wanted], rule.text
    assert np.broadcast_to(found.false, len(held)).tolist() == [answer is False for answer in wanted], rule.text
    tally_up("edit rules judged twice")


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab01 .,()\"'`<>=!+-*andorimplestg2024"), max_size=60))
def test_any_text_is_a_rule_or_a_mistake_with_its_place(text: str) -> None:
    told = "at its end"
    try:
        parse_rule(text)
    except RuleError as error:
        told = str(error)
    assert "at character" in told or "at its end" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a >= >= b", "a value is missing at character 6, before '>= b'"),
        ("a > 3 and", "a value is missing at its end"),
        ('a = "x', "a quote is not closed at character 5"),
        ("a > 3 b < 4", "'and', 'or' or 'implies' is missing at character 7"),
        ("(" * 60 + "a", "the nesting is too deep"),
        ("-" * 500 + "a > 1", "the nesting is too deep"),
        ("+".join("a" * 500) + " > 1", "the expression is too long"),
        ("a in 3", "'(' is missing at character 6"),
        ("a ->", "a value is missing at its end"),
        ("__import__('os')", "'and', 'or' or 'implies' is missing"),
        ("a; drop table t", "unknown character at character 2"),
    ],
)
def test_mistakes_show_their_place(text: str, told: str) -> None:
    policy = {"privacy": {"k": 2}, "columns": {"a": {"role": "quasi"}}, "rules": [{"check": "a > 1"}, {"check": text}]}
    with pytest.raises(kinfold.PolicyError) as caught:
        kinfold.Policy.parse(policy)
    assert "'rules.2.check'" in str(caught.value)
    assert told in str(caught.value)


def table(seed: int, n: int = 60, nulls: float = 0.05) -> pa.Table:
    """Stays in a hospital, of which a few break the rules already."""
    random = np.random.default_rng(seed)
    age = random.integers(0, 60, n)
    first = [date(2024, 1, 1) + timedelta(days=int(x)) for x in random.integers(0, 200, n)]
    stay = random.integers(0, 20, n) - (random.random(n) < 0.05) * 30
    last = [day + timedelta(days=int(x)) for day, x in zip(first, stay, strict=True)]
    marital = np.where((age < 16) & (random.random(n) < 0.95), "single", random.choice(["single", "married"], n))

    def some(values: Any, kind: pa.DataType) -> pa.Array:
        gone = random.random(n) < nulls
        return pa.array([None if g else v for v, g in zip(values, gone, strict=True)], kind)

    return pa.table(
        {
            "age": some(age.tolist(), pa.int64()),
            "admission": some(first, pa.date32()),
            "discharge": some(last, pa.date32()),
            "marital": some(marital.tolist(), pa.string()),
            "children": pa.array(np.where(age < 16, 0, random.integers(0, 4, n)).tolist()),
            "ill": pa.array(random.choice(["a", "b", "c"], n).tolist()),
        }
    )


CHECKS = ("discharge >= admission", 'age < 16 implies marital = "single"', "age < 16 implies children = 0")


def broken(rows_: list[dict[str, Any]]) -> list[int]:
    """Rows that break each rule, one at a time; what is no plain value any more is not judged."""

    def late(row: dict[str, Any]) -> bool:
        both = row["discharge"], row["admission"]
        return all(isinstance(day, date) for day in both) and both[0] < both[1]

    def child(row: dict[str, Any]) -> bool:
        return isinstance(row["age"], int) and row["age"] < 16

    wed = [child(row) and row["marital"] == "married" for row in rows_]
    parents = [child(row) and isinstance(row["children"], int) and row["children"] > 0 for row in rows_]
    return [sum(map(late, rows_)), sum(wed), sum(parents)]


QUASI = {
    "all": ("age", "admission", "discharge", "marital"),
    "some": ("age", "admission"),
    "other": ("discharge", "marital"),
}


def asked(method: str, quasi: str, missing: str, repair: bool) -> dict[str, Any]:
    family = list_methods()[method].family
    ladders = {
        "age": {"hierarchy": {"intervals": [5, 20]}},
        "admission": {"hierarchy": {"dates": ["month", "year"]}},
        "discharge": {"hierarchy": {"dates": ["month", "year"]}},
    }
    columns: dict[str, Any] = {
        name: {"role": "other"} for name in ("age", "admission", "discharge", "marital", "children")
    }
    for name in QUASI[quasi] if "one number" not in list_methods()[method].needs else ("age",):
        columns[name] = {"role": "quasi"}
        if name != "marital":
            choice = "separate" if family == "generalize" and missing == "mean" else missing
            columns[name] |= {"missing": choice, **(ladders[name] if family == "generalize" else {})}
    columns["ill"] = {"role": "confidential"}
    t = {"t": 0.5} if "t" in list_methods()[method].needs else {}
    checks = [{"check": check, "repair": repair} for check in CHECKS]
    limited = family == "generalize" and "suppression" not in list_methods()[method].needs  # cells may all go missing
    suppression = {"suppression": 0.2} if limited else {}
    method_ = {"name": method, **suppression}
    return {"privacy": {"k": 3, "l": 2, **t}, "method": method_, "columns": columns, "rules": checks}


CASES = [("all", "separate"), ("all", "mean"), ("some", "mean"), ("other", "drop"), ("some", "separate")]


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("method", first(list_methods(), 2))
def test_every_method_counts_rules_and_keeps_them_where_asked(method: str) -> None:
    turn = [*list_methods()].index(method)  # every case comes up, with one method or another
    for seed in range(2):
        counted_and_kept(seed, asked(method, *CASES[(turn + seed) % len(CASES)], repair=True))
    counted_and_kept(2, asked(method, *CASES[(turn + 2) % len(CASES)], repair=False))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("method", list_methods())
def test_every_method_keeps_rules_on_many_tables(method: str) -> None:
    for seed in range(2):
        for case in CASES:
            counted_and_kept(seed, asked(method, *case, repair=True))


def counted_and_kept(seed: int, policy: dict[str, Any]) -> None:
    source = table(seed)
    release = kinfold.anonymize(source, policy)
    assert release.verdict.holds
    found = [(count.before, count.after) for count in release.rules]
    assert found == [*zip(broken(source.to_pylist()), broken(release.frame.to_pylist()), strict=True)]
    if policy["rules"][0]["repair"]:
        assert all(count.after <= count.before for count in release.rules)
    tally_up("releases with edit rules")


def test_imputed_values_break_no_rule_whatever_is_repaired() -> None:
    """The mean age is that of an adult: a pupil whose age is missing cannot have it."""
    age = [None if i % 10 == 0 else 5 + i % 4 if i % 2 else 50 for i in range(40)]
    pupil = ["no" if (i % 2 == 0 and i % 10) else "yes" for i in range(40)]
    source = pa.table({"age": pa.array(age, pa.int64()), "zip": [i % 4 for i in range(40)], "pupil": pupil})
    columns: dict[str, Any] = {"age": {"role": "quasi", "missing": "mean"}, "zip": {"role": "quasi"}}
    columns["pupil"] = {"role": "other"}
    rule = {"check": 'pupil = "yes" implies age < 16'}
    policy = {"privacy": {"k": 3}, "method": {"name": "mdav"}, "columns": columns, "rules": [rule]}
    release = kinfold.anonymize(source, policy)
    imputed = [new for new, was in zip(release.frame.column("age").to_pylist(), age, strict=True) if was is None]
    assert len(imputed) == 4
    assert all(value is None or value < 16 for value in imputed)


def test_a_record_that_no_imputed_value_fits_is_left_out() -> None:
    source = pa.table({"age": [None, *range(20, 50)], "odd": ["yes"] + ["no"] * 30})
    columns = {"age": {"role": "quasi", "missing": "mean"}, "odd": {"role": "other"}}
    rule = {"check": 'odd = "yes" implies age > 1000'}
    release = kinfold.anonymize(source, {"privacy": {"k": 3}, "columns": columns, "rules": [rule]})
    assert release.measures["suppressed"] == 1
    assert any("no imputed value keeps every edit rule" in note for note in release.plan.public_notes)


def test_what_no_value_of_the_class_keeps_is_blanked() -> None:
    """Every record has a total of its own, so no value of a class fits all of its records."""
    source = pa.table({"part": list(range(12)), "total": [2 * i for i in range(12)]})
    columns = {"part": {"role": "quasi"}, "total": {"role": "other"}}
    for repair in (False, True):
        rule = {"check": "total = part + part", "repair": repair}
        policy = {"privacy": {"k": 3}, "method": {"name": "mdav"}, "columns": columns, "rules": [rule]}
        release = kinfold.anonymize(source, policy)
        assert release.rules[0].is_worse == (not repair)
        told = [note for note in release.plan.public_notes if "blanked so that edit rules hold" in note]
        assert len(told) == repair
        assert release.frame.column("part").null_count == (12 if repair else 0)
    assert kinfold.anonymize(source.to_pandas(), policy).frame["part"].isna().all()


def count_other_images(source: pa.Table, rows: list[dict[str, Any]], first: str, second: str) -> int:
    """Count the rows whose second value the source knows, and is not the one that most records of the first have."""
    held: dict[Any, list[Any]] = {}
    for row in source.to_pylist():
        if None not in (row[first], row[second]):
            held.setdefault(row[first], []).append(row[second])
    image = {value: max(dict.fromkeys(others), key=others.count) for value, others in held.items()}
    judged = [row for row in rows if row[first] in image and row[second] in image.values()]
    return sum(image[row[first]] != row[second] for row in judged)


@pytest.mark.slow
@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_function_is_read_from_the_source_counted_and_kept(seed: int, repair: bool) -> None:
    draw = np.random.default_rng(seed)
    town = draw.choice(["Bern", "Chur", "Genf", "Thun", None], 120, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    area = [{"Bern": 30, "Chur": 70, "Genf": 12, "Thun": 36}.get(each) for each in town]
    area[5], area[17] = 70, None  # a mistake, and an area that is not known
    source = pa.table({"age": draw.integers(20, 90, 120), "town": town, "area": pa.array(area, pa.int64())})
    columns = {"age": {"role": "quasi"}, "town": {"role": "quasi"}, "area": {"role": "other", "type": "nominal"}}
    rules = [{"check": check, "repair": repair} for check in ("town -> area", "town <-> area")]
    policy: dict[str, Any] = {"privacy": {"k": 40}, "method": {"name": "mdav"}, "columns": columns, "rules": rules}
    release = kinfold.anonymize(source, policy)
    with pytest.raises(kinfold.PolicyError, match="needs a column on each side"):
        kinfold.anonymize(source, {**policy, "rules": [{"check": "town -> 3"}]})
    before, after = (count_other_images(source, rows.to_pylist(), "town", "area") for rows in (source, release.frame))
    assert (release.rules[0].before, release.rules[0].after) == (before, after)
    assert before == int(area[5] != {"Chur": 70}.get(town[5]))
    assert (after > before) == (not repair)
    assert release.rules[1].is_worse == (not repair)


def test_rules_speak_of_mapped_values_and_count_before_other_recodings() -> None:
    source = pa.table({"start": [1, 1, 1, 8, 9, 9], "end": [2, 2, 3, 9, 9, 9], "kind": list("aabbcc")})
    columns: dict[str, Any] = {
        "start": {"role": "quasi", "type": "continuous"},
        "end": {"role": "other", "top": 5},
        "kind": {"role": "other", "map": {"c": "x"}},
    }
    checks = [{"check": "end >= start"}, {"check": 'kind != "x"'}]
    policy = {"privacy": {"k": 2}, "method": {"name": "mdav"}, "columns": columns, "rules": checks}
    counts = kinfold.anonymize(source, policy).rules
    assert [(count.before, count.after) for count in counts] == [(0, 3), (2, 2)]
    assert counts[0].is_worse


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("agee > 3", "no column 'agee', did you mean 'age'?"),
        ('age = "x"', "'age' and the part at character 7 cannot be compared"),
        ("marital < 3", "'marital' and the part at character 11 cannot be compared"),
        ('marital < "b"', "'marital' has no order"),
        ("age", "'age' is neither true nor false"),
        ("admission > age", "'admission' and 'age' cannot be compared"),
        ("admission * 2 > age", "cannot be compared"),
        ('discharge >= "soon"', "cannot be compared"),
        ("1 < 2", "it names no column"),
        ("(age + 1) is missing", "'is missing' needs a column"),
        ("name is missing", "column 'name' is removed"),
    ],
)
def test_rules_that_mean_nothing_are_problems_of_the_policy(check: str, told: str) -> None:
    policy = asked("mdav", "all", "separate", repair=False)
    policy["columns"] |= {"name": {"role": "identifier"}, "nobody": {"role": "other"}}
    policy["rules"] = [{"check": "age < 200"}, {"check": check}, {"check": "agee < 3"}]
    source = table(0).append_column("name", pa.array(["n"] * 60))
    with pytest.raises(kinfold.PolicyError) as caught:
        kinfold.anonymize(source, policy)
    problems = [problem.what for problem in caught.value.problems]
    assert any(problem.startswith("rules, 2: ") and told in problem for problem in problems)
    assert any("rules, 3: no column 'agee'" in problem for problem in problems)
    assert any("no column 'nobody'" in problem for problem in problems)


@pytest.mark.slow
def test_faces_say_when_a_release_breaks_more_than_its_source(tmp_path: Path) -> None:
    source = pa.table({"part": list(range(12)), "total": [2 * i for i in range(12)]})
    columns = {"part": {"role": "quasi"}, "total": {"role": "other"}}
    rule = {"check": "total = part * 2"}
    policy = {"privacy": {"k": 3}, "method": {"name": "mdav"}, "columns": columns, "rules": [rule]}
    source.to_pandas().to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "policy.toml").write_text(kinfold.Policy.parse(policy).toml())
    asked_for = ("anonymize", tmp_path / "data.csv", "--policy", tmp_path / "policy.toml", "--out", tmp_path / "out")
    said = " ".join(run(*asked_for).out.split())
    assert "edit rule total = part * 2: broken by 0 records before and 8 after. MORE THAN BEFORE" in said
    public, internal = ((tmp_path / "out" / side / "report.html").read_text() for side in ("public", "internal"))
    assert "1 of 1 edit rules is broken more often than before: by 8 records" in public
    assert "total = part" not in public
    assert "edit rule total = part * 2: broken by 0 records before and 8 after" in internal
    assert run("verify", tmp_path / "out" / "public").code == 0
    again = run(*asked_for, "--force", "--json")
    assert again.json["rules"] == [{"check": "total = part * 2", "before": 0, "after": 8, "not_judged": 0}]
    same = (*asked_for[:3], tmp_path / "out" / "internal" / "policy.toml", "--out", tmp_path / "again")
    assert run(*same).code == 0
    assert (tmp_path / "again/public/release.csv").read_bytes() == (tmp_path / "out/public/release.csv").read_bytes()
