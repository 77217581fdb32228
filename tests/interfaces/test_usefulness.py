"""An analysis before and after: the estimates of `report.task`, against other programs, and where they are shown."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import kinfold
from command import run
from kinfold.errors import PolicyError

QUANTILE = 1.96


def people(records: int = 300) -> pd.DataFrame:
    """Return people who do not exist; charges grow with age, and few people are in the last group."""
    draw = np.random.default_rng(7)
    age = draw.integers(20, 80, records)
    sex = draw.choice(["f", "m"], records).astype(object)
    sex[::100] = "zz"
    charge = 50 + 3.0 * age + 20 * (sex == "m") + draw.normal(0, 15, records)
    return pd.DataFrame({"age": age, "sex": sex, "charge": charge.round(2), "ward": draw.choice(list("abc"), records)})


def policy(task: str | None = "charge ~ age + sex", method: str = "mdav") -> dict[str, Any]:
    columns = {"age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [10, 30]}}}
    columns |= {"sex": {"role": "quasi"}, "charge": {"role": "other"}, "ward": {"role": "confidential"}}
    return {
        "privacy": {"k": 6},
        "method": {"name": method},
        "columns": columns,
        "report": {"task": task} if task else {},
    }


def estimates(task: Any) -> dict[tuple[Any, ...], Any]:
    return {(each["statistic"], each["column"], each["category"]): each for each in task["estimates"]}


def test_a_slope_its_interval_and_a_correlation_are_those_of_scipy() -> None:
    release = kinfold.anonymize(people(), policy("charge ~ age"))
    found = estimates(release.measures["loss"]["task"])
    before, after = (stats.linregress(table.age, table.charge) for table in (people(), release.frame))
    slope, correlation = found["coefficient", "age", None], found["correlation", "age", None]
    assert (slope["before"], slope["after"]) == pytest.approx((before.slope, after.slope))
    assert (slope["low"], slope["high"]) == pytest.approx(
        (before.slope - QUANTILE * before.stderr, before.slope + QUANTILE * before.stderr)
    )
    assert (correlation["before"], correlation["after"]) == pytest.approx((before.rvalue, after.rvalue))
    interval = stats.pearsonr(people().age, people().charge).confidence_interval(0.95)
    assert (correlation["low"], correlation["high"]) == pytest.approx((interval.low, interval.high), abs=1e-4)
    assert slope["inside"] == (slope["low"] <= slope["after"] <= slope["high"])


def test_means_of_groups_are_those_of_pandas_and_a_group_that_vanished_has_none() -> None:
    release = kinfold.anonymize(people(), policy())
    found = estimates(release.measures["loss"]["task"])
    before, after = (table.groupby("sex")["charge"] for table in (people(), release.frame))
    for group in ("f", "m"):
        mean = found["mean", "sex", group]
        assert (mean["before"], mean["after"]) == pytest.approx((before.mean()[group], after.mean()[group]))
        width = QUANTILE * before.sem()[group]
        assert (mean["low"], mean["high"]) == pytest.approx((mean["before"] - width, mean["before"] + width))
    assert "zz" not in {*release.frame.sex}
    assert (found["mean", "sex", "zz"]["after"], found["mean", "sex", "zz"]["inside"]) == (None, False)
    assert found["coefficient", "sex", "zz"]["after"] is None
    base = before.size().idxmax()
    assert ("coefficient", "sex", base) not in found


def test_a_table_released_as_it_is_has_the_same_estimates() -> None:
    task = kinfold.measure(people(), people(), policy(None), task="charge ~ age + sex + ward")["loss"]["task"]
    assert [each["after"] for each in task["estimates"]] == pytest.approx(
        [each["before"] for each in task["estimates"]]
    )
    assert (task["inside"], task["loss"]) == (1.0, pytest.approx(0))


def test_ranges_and_other_methods_have_estimates_too() -> None:
    task = kinfold.anonymize(people(), policy(method="lattice")).measures["loss"]["task"]
    assert estimates(task)["coefficient", "age", None]["after"] == pytest.approx(
        3.0, rel=0.2
    )  # by the middle of a range


@pytest.mark.parametrize(
    ("task", "words"),
    [("charge ~ agee", "'agee'"), ("ward ~ age", "'ward' is nominal"), ("charge", "the task 'charge' is not known")],
)
def test_a_task_that_cannot_be_is_refused(task: str, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        kinfold.anonymize(people(), policy(task))


def test_the_command_counts_the_internal_page_draws_and_no_other_names_a_category(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.toml").write_text(kinfold.Policy.of(policy()).toml(), "utf-8")
    command = ("anonymize", tmp_path / "people.csv", "--policy", tmp_path / "policy.toml", "--out", tmp_path / "out")
    said = run(*command).ok().out
    assert "charge ~ age + sex: " in said
    assert "estimates inside the confidence intervals of the original" in said
    internal, public = ((tmp_path / "out" / part / "report.html").read_text("utf-8") for part in ("internal", "public"))
    assert "Usefulness" in internal
    assert "mean, sex = zz" in internal
    assert "Usefulness" not in public
    assert "zz" not in public
    told = run(*command, "--force", "--json").ok()
    assert {each["category"] for each in told.json["loss"]["task"]["estimates"]} == {None}
    assert '"zz"' not in told.out
