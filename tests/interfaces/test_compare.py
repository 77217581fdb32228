"""`kinfold compare`: the grid, what is kept of it, the ranking, and the page."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import kinfold
from command import run, text
from kinfold.comparison import Outcome, Setting, build_grid, rank, run_grid, save
from kinfold.comparison import grid as workers
from kinfold.errors import Cancelled
from kinfold.policy.model import Policy

NAME = "<b>a & 'b'</b>"
FRAME = pd.DataFrame({NAME: [(i * 37) % 101 for i in range(40)], "y": [(i * i) % 67 for i in range(40)]})
POLICY = Policy.of(
    {"privacy": {"k": 2}, "columns": {name: {"role": "quasi", "type": "continuous"} for name in FRAME.columns}}
)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MAX_WORKERS", 1)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A comparison by the command, two settings at a time."""
    folder = tmp_path_factory.mktemp("compared")
    options = desk(folder)
    ran = run(
        "compare", *options, "--methods", "mdav,v-mdav,lattice", "--k", "2,4", "--out", folder / "out", "--json"
    ).ok()
    return folder, ran.json


def desk(folder: Path) -> tuple[Any, ...]:
    FRAME.to_csv(folder / "table.csv", index=False)
    return folder / "table.csv", "--policy", text(folder, "policy.toml", POLICY.toml())


class Words(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, _: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.slow
def test_every_setting_is_ranked_or_listed_with_its_reason(compared: tuple[Path, Any]) -> None:
    _, found = compared
    tried = [(each["setting"]["method"], each["setting"]["k"]) for each in found["settings"]]
    assert sorted(tried) == [("mdav", 2), ("mdav", 4), ("v-mdav", 2), ("v-mdav", 4)]
    assert [(each["method"], each["k"]) for each in found["failed"]] == [("lattice", 2), ("lattice", 4)]
    assert all("hierarchy" in each["reason"] for each in found["failed"])
    scores = [each["score"] for each in found["settings"]]
    assert scores == sorted(scores)
    for each in found["settings"]:
        risk, loss = each["measures"]["risk"]["linkage"], each["measures"]["loss"]["overall"]
        assert each["score"] == pytest.approx(50 * risk + 50 * loss)
        assert each["measures"]["k"] >= each["setting"]["k"]


def test_a_setting_is_on_the_front_if_none_has_as_little_of_both_and_less_of_one(compared: tuple[Path, Any]) -> None:
    points = [(each["risk"], each["loss"], each["best"]) for each in compared[1]["settings"]]
    for risk, loss, best in points:
        beaten = any(r <= risk and l <= loss and (r, l) != (risk, loss) for r, l, _ in points)
        assert best is not beaten


def test_the_folder_holds_the_table_the_facts_and_the_map(compared: tuple[Path, Any]) -> None:
    out = compared[0] / "out"
    with (out / "comparison.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["method"] for row in rows] == [each["setting"]["method"] for each in compared[1]["settings"]]
    assert json.loads((out / "comparison.json").read_text()) == compared[1]
    assert (out / "map.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "map.svg").read_text().startswith("<svg")
    assert len(list((out / "runs").glob("*.json"))) == 6


def test_the_page_says_what_to_take_and_shows_names_as_text(compared: tuple[Path, Any]) -> None:
    html = (compared[0] / "out" / "comparison.html").read_text()
    page = Words(html)
    assert not page.tags & {"b", "script", "img", "a", "iframe"}
    assert NAME in page.text
    assert compared[1]["choice"].replace(" = ", "\xa0=\xa0") in page.text
    assert "information lost" in page.text.lower()
    assert "'sha256-" in html


@pytest.mark.slow
def test_a_comparison_goes_on_where_it_was_and_starts_anew_when_something_changed(
    compared: tuple[Path, Any], alone: None
) -> None:
    folder, before = compared
    runs = {path: path.stat().st_mtime_ns for path in (folder / "out" / "runs").glob("*.json")}
    options = (*desk(folder), "--methods", "lattice,mdav", "--out", folder / "out", "--json")
    again = run("compare", *options, "--k", "4,2").json  # another order is no other comparison
    assert {path: path.stat().st_mtime_ns for path in (folder / "out" / "runs").glob("*.json")} == runs
    shown = {
        each["setting"]["k"]: each["measures"] for each in before["settings"] if each["setting"]["method"] == "mdav"
    }
    assert {each["setting"]["k"]: each["measures"] for each in again["settings"]} == shown
    run("compare", *options, "--k", "4", "--set", "output.round=false")
    assert len(list((folder / "out" / "runs").glob("*.json"))) == len(runs) + 2


@pytest.mark.usefixtures("alone")
def test_a_changed_frame_or_hierarchy_file_starts_anew(tmp_path: Path) -> None:
    grid, seen = build_grid(["mdav"], [2]), []
    told = lambda done, _: seen.append(done)  # noqa: E731
    tree = text(tmp_path, "tree.csv", "\n".join(f"{i};{i // 10};*" for i in range(101)))
    column = {"role": "quasi", "type": "nominal", "hierarchy": {"file": str(tree)}}
    policy = Policy.of({"privacy": {"k": 2}, "columns": {NAME: column, "y": {"role": "quasi"}}})
    run_grid(FRAME, policy, grid, tmp_path / "runs", told)
    run_grid(FRAME, policy, grid, tmp_path / "runs", told)
    assert seen == [0, 1, 1]
    text(tmp_path, "tree.csv", "\n".join(f"{i};{i // 20};*" for i in range(101)))
    run_grid(FRAME, policy, grid, tmp_path / "runs", told)
    assert seen == [0, 1, 1, 0, 1]
    last = FRAME.copy()
    last.loc[39, "y"] += 1
    run_grid(last, policy, grid, tmp_path / "runs", told)
    assert seen == [0, 1, 1, 0, 1, 0, 1]


@pytest.mark.usefixtures("alone")
def test_a_listener_may_stop_a_comparison_and_what_is_done_is_kept(tmp_path: Path) -> None:
    grid = build_grid(["mdav"], [2, 3, 4])

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        run_grid(FRAME, POLICY, grid, tmp_path, stop)
    seen: list[int] = []
    run_grid(FRAME, POLICY, grid, tmp_path, lambda done, _: seen.append(done))
    assert seen == [2, 3]


@pytest.mark.usefixtures("alone")
def test_half_a_result_is_made_again(tmp_path: Path) -> None:
    grid = build_grid(["mdav"], [2])
    whole = run_grid(FRAME, POLICY, grid, tmp_path)
    (file,) = tmp_path.glob("*.json")
    for broken in ("", "[]", '{"measures"'):
        file.write_text(broken)
        again = run_grid(FRAME, POLICY, grid, tmp_path)
        assert again[0].measures["loss"] == whole[0].measures["loss"]


@pytest.mark.slow
def test_a_comparison_that_was_killed_goes_on_and_its_workers_end_with_it(tmp_path: Path, alone: None) -> None:
    options = [*map(str, desk(tmp_path)), "--methods", "mdav,v-mdav", "--k", "2,3,4,5,6,7,8,9"]
    call = [sys.executable, "-c", "from kinfold.cli import main; main()", "compare", *options]
    where = {**os.environ, "PYTHONPATH": str(Path(kinfold.__file__).parents[1])}
    started = subprocess.Popen([*call, "--out", str(tmp_path / "out")], env=where, stdout=subprocess.DEVNULL)
    runs = tmp_path / "out" / "runs"
    waited(lambda: runs.is_dir() and any(runs.glob("*.json")))
    workers = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    started.send_signal(signal.SIGKILL)
    started.wait()
    waited(lambda: not any(alive(pid) for pid in workers))
    kept = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert kept
    assert not (tmp_path / "out" / "comparison.html").exists()
    ran = run("compare", *options, "--out", tmp_path / "out", "--json")
    assert len(ran.json["settings"]) == 16
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert (tmp_path / "out" / "comparison.html").exists()


def alive(pid: str) -> bool:
    try:
        return "python" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def waited(done: Any) -> None:
    for _ in range(600):
        if done():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


@pytest.mark.slow
def test_a_script_without_a_guard_is_not_run_again_by_the_workers(tmp_path: Path) -> None:
    script = text(
        tmp_path,
        "script.py",
        "import pandas as pd, kinfold\n"
        "print('once')\n"
        "table = pd.DataFrame({'x': [i * 37 % 101 for i in range(40)]})\n"
        "policy = {'privacy': {'k': 2}, 'columns': {'x': {'role': 'quasi', 'type': 'continuous'}}}\n"
        "print(kinfold.compare(table, policy, methods=['mdav'], k=[2, 4]).advice())\n",
    )
    where = {**os.environ, "PYTHONPATH": str(Path(kinfold.__file__).parents[1])}
    ran = subprocess.run([sys.executable, script], env=where, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("once") == 1
    assert "Take mdav with k = " in ran.stdout


@pytest.mark.usefixtures("alone")
def test_frames_and_paths_compare_alike(tmp_path: Path) -> None:
    path, _, policy = desk(tmp_path)
    by_frame = kinfold.compare(FRAME, POLICY, methods=["mdav"], k=[2])
    by_path = kinfold.compare(path, policy, methods=["mdav"], k=[2])
    assert by_frame.ranked[0].measures["loss"] == by_path.ranked[0].measures["loss"]
    with pytest.raises(kinfold.PolicyError, match="not a table"):
        kinfold.compare(3, POLICY, methods=["mdav"], k=[2])


def outcome(method: str, k: int, risk: float, loss: float | None, t: float | None = None) -> Outcome:
    measures = {"risk": {"linkage": risk}, "loss": {"sse_ratio": loss, "granularity": 1 - (loss or 0)}}
    return Outcome(Setting(method, k, t), {**measures, "classes": 1, "suppressed": 0, "seconds": 0.1})


def test_the_weight_decides_and_the_sentence_says_what_the_next_costs() -> None:
    tried = [outcome("mdav", 3, 0.3, 0.05), outcome("mdav", 10, 0.05, 0.2), Outcome(Setting("x", 2), None, "no")]
    low, high = rank(tried, weight=0.0), rank(tried, weight=1.0)
    assert low.ranked[0].setting.k == 3
    assert high.ranked[0].setting.k == 10
    assert high.advice() == (
        "Take mdav with k = 10. Its risk (linkage) is 5.00%, its loss (lost variation) 20.00%, at 100% weight on the "
        "risk. The next, mdav with k = 3, has 25.00% more risk and 15.00% less loss."
    )
    assert high.failed == ((Setting("x", 2), "no"),)


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_partitioners_and_generalizers_are_ranked_together_on_every_column() -> None:
    table = FRAME.assign(town=[("north", "south", "east")[i % 3] for i in range(40)])
    numbers = {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [10, 50]}}
    town = {"role": "quasi", "hierarchy": {"levels": [["north", "far"], ["south", "far"], ["east", "near"]]}}
    policy = {"privacy": {"k": 3}, "columns": {NAME: numbers, "y": numbers, "town": town}}
    found = kinfold.compare(table, policy, methods=["mdav", "datafly", "lattice"], k=[3])
    assert found.loss == "overall"
    assert {each.setting.method for each in found.ranked} == {"mdav", "datafly", "lattice"}
    for each in found.ranked:
        assert each.loss == pytest.approx(sum(each.measures["loss"]["by_column"].values()) / 3)
    assert "information lost" in found.advice()


def test_a_measure_that_one_setting_lacks_is_not_compared_by() -> None:
    tried = [outcome("mdav", 3, 0.3, 0.05), outcome("lattice", 3, 0.1, None)]
    found = rank(tried)
    assert (found.loss, found.titles[1]) == ("granularity", "Granularity lost")
    with pytest.raises(kinfold.Unreachable, match="'sse_ratio' does not apply"):
        rank(tried, loss="sse_ratio")
    with pytest.raises(kinfold.PolicyError, match="no loss named"):
        rank(tried, loss="prettiness")
    with pytest.raises(kinfold.PolicyError, match="weight"):
        rank(tried, weight=2)
    with pytest.raises(kinfold.Unreachable, match="no setting"):
        rank([Outcome(Setting("x", 2), None, "no")])


def test_several_t_stand_on_the_map_by_name(tmp_path: Path) -> None:
    found = rank([outcome("mdav", 3, 0.3, 0.05, 0.1), outcome("mdav", 3, 0.2, 0.1, 0.2)])
    save(found, tmp_path)
    assert "mdav t=0.1, 3" in (tmp_path / "map.svg").read_text()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--methods", "mdva"), "did you mean 'mdav'"),
        (("--k", "1"), "privacy.k"),
        (("--k", "three"), "not a list of numbers"),
        (("--methods", ","), "nothing to compare"),
        (("--risk", "luck"), "no risk named"),
    ],
)
def test_a_grid_that_cannot_be_is_an_error_before_anything_runs(
    tmp_path: Path, options: tuple[str, ...], what: str
) -> None:
    run("compare", *desk(tmp_path), "--out", tmp_path / "out", "--k", "2", "--methods", "mdav", *options).fails(2, what)
    assert not (tmp_path / "out").exists()


METHODS = ("auto", "mdav", "v-mdav", "t-merge", "k-first", "t-first", "lattice")


@pytest.mark.slow
def test_a_method_loses_in_a_comparison_what_it_loses_alone(alone: None) -> None:
    from kinfold.demo import make_patients

    patients = make_patients().slice(0, 120)
    policy = Policy.load(Path(kinfold.__file__).parent / "demo" / "policy.toml")
    found = kinfold.compare(patients, policy, methods=METHODS, k=[4], t=[0.4])
    assert {each.setting.method for each in found.ranked} == {*METHODS}
    for each in found.ranked:
        release = kinfold.anonymize(patients, each.setting.apply_to(policy))
        assert each.measures["loss"]["overall"] == release.measures["loss"]["overall"], each.setting
        assert each.measures["method"] == release.plan.method


def test_what_auto_chose_stands_beside_it(alone: None, tmp_path: Path) -> None:
    run("compare", *desk(tmp_path), "--k", "2", "--out", tmp_path / "out").ok()
    rows = [*csv.DictReader((tmp_path / "out" / "comparison.csv").read_text("utf-8").splitlines())]
    assert {row["method"] for row in rows} == {"auto (mdav, refined)", "mdav", "v-mdav"}
    assert "auto (mdav, refined)" in Words((tmp_path / "out" / "comparison.html").read_text("utf-8")).text


def test_a_comparison_names_no_category(compared: tuple[Path, Any]) -> None:
    _, told = compared
    shifts = [each["measures"]["loss"]["shift"] for each in told["settings"]]
    assert any(shifts)
    assert not [column for shift in shifts for column in shift.values() if "moves" in column]
