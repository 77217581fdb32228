"""Runs in the studio: the same bytes as the command, ended at any time, there when the browser comes back."""

from __future__ import annotations

import io
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

import kinfold
from command import content, run
from kinfold.demo import read_demo_policy, write_demo_table
from kinfold.studio.refusals import StudioLimits
from kinfold.studio.server import Studio
from studio.tables import households
from studio.visitor import Visitor, studio, wait_for

pytestmark = pytest.mark.slow


def unpacked(visitor: Visitor, ident: str, part: str, into: Path) -> Path:
    archive = zipfile.ZipFile(io.BytesIO(visitor.ask("GET", f"/api/runs/{ident}/{part}.zip").body))
    archive.extractall(into / part)
    return into / part


def as_the_command_does(visitor: Visitor, ident: str, table: bytes, name: str, folder: Path) -> Path:
    """Run the command that the studio shows, on the same table with the policy that it hands out."""
    (folder / name).write_bytes(table)
    (folder / "policy.toml").write_bytes(visitor.ask("GET", f"/api/runs/{ident}/policy.toml").body)
    again = visitor.get(f"/api/runs/{ident}/verdict")["again"]
    assert again["command"] == f"kinfold anonymize {name} --policy policy.toml --out release"
    made = run("anonymize", folder / name, "--policy", folder / "policy.toml", "--out", folder / "release")
    assert made.code == 0, made.err
    return folder / "release"


@pytest.fixture(scope="module")
def tried(demo: Visitor) -> str:
    """A run of the demo as it stands, for all tests that look at one."""
    done = demo.run()
    assert done["state"] == "done", done["problems"]
    return str(done["id"])


def test_a_release_is_byte_for_byte_what_the_command_gives(
    made: Studio, demo: Visitor, tried: str, tmp_path: Path
) -> None:
    table = next(path for path in made.sessions.folder.rglob("patients.csv"))
    release = as_the_command_does(demo, tried, table.read_bytes(), "patients.csv", tmp_path)
    public = unpacked(demo, tried, "public", tmp_path / "studio")
    assert content(public) == content(release / "public")
    internal = unpacked(demo, tried, "internal", tmp_path / "studio")
    assert content(internal).keys() == content(release / "internal").keys()
    assert content(internal)["policy.toml"] == content(release / "internal")["policy.toml"]
    assert kinfold.verify(public, twice=True).holds


def test_a_table_of_households_goes_the_whole_way(made: Studio, tmp_path: Path) -> None:
    visitor = Visitor.let_in(made)
    table = households(90)
    visitor.opened("households.csv", table)
    roles = {"household": "identifier", "age": "quasi-identifier", "income": "quasi-identifier"}
    roles |= {"region": "quasi-identifier", "illness": "confidential"}
    visitor.post("/api/decision", {"set": {f"columns.{name}.role": role for name, role in roles.items()}})
    visitor.post("/api/decision", {"set": {"columns.income.missing": "mean", "columns.income.type": "continuous"}})
    visitor.post("/api/decision", {"set": {"privacy.k": 3, "privacy.unit": "household", "method.name": "mdav"}})
    visitor.post("/api/decision", {"set": {"review.codes.answer": "yes"}})
    visitor.post("/api/hierarchy?column=region", {"merge": ["N", "S"], "name": "pole", "level": 1}, method="PUT")
    assert visitor.get("/api/check")["problems"] == []
    done = visitor.run()
    assert done["state"] == "done", done["problems"]
    release = as_the_command_does(visitor, done["id"], table, "households.csv", tmp_path)
    public = unpacked(visitor, done["id"], "public", tmp_path / "studio")
    assert content(public) == content(release / "public")
    assert run("verify", public, "--twice").code == 0


def test_a_folder_is_saved_in_the_workspace_and_nowhere_else(made: Studio, demo: Visitor, tried: str) -> None:
    public, before = f"/api/runs/{tried}/public/save", {*made.sessions.workspace.iterdir()}
    told = demo.post(public)
    place = made.sessions.workspace / "patients-public"
    assert told == {"folder": "patients-public", "path": str(place)}
    assert demo.get("/api/session")["workspace"] == str(made.sessions.workspace)
    assert kinfold.verify(place).holds
    assert demo.ask("POST", public).status == 409  # nothing is overwritten
    demo.post(f"/api/runs/{tried}/internal/save", {"folder": "kept inside"})
    inside = made.sessions.workspace / "kept inside"
    assert sorted(path.name for path in inside.iterdir()) == ["audit.json", "policy.toml", "report.html"]
    assert oct(inside.stat().st_mode & 0o777) == "0o700"
    (made.sessions.workspace / "link").symlink_to(made.sessions.workspace.parent / "elsewhere")
    assert demo.ask("POST", public, {"folder": "link"}).status == 409
    for name in ("../out", "/tmp/out", "a/b", "..", ".hidden", "a\\b", "C:x", "a\nb", " ", "x" * 300):
        assert demo.ask("POST", public, {"folder": name}).status == 422, name
    new = {*made.sessions.workspace.iterdir()} - before
    assert sorted(path.name for path in new) == ["kept inside", "link", "patients-public"]
    assert demo.ask("POST", f"/api/runs/{tried}/secret/save").status == 404


def test_what_is_known_of_a_run(demo: Visitor, tried: str) -> None:
    told = demo.get(f"/api/runs/{tried}")
    assert told["summary"]["holds"]
    assert told["share"] == 1.0
    assert told["name"] == "mdav, k = 5"
    verdict = demo.get(f"/api/runs/{tried}/verdict")
    assert verdict["headline"].startswith("Every one of the 1,000 released records")
    assert [each["holds"] for each in verdict["checkers"]] == [True, True]
    assert verdict["not_promised"]
    columns = demo.get(f"/api/runs/{tried}/columns")["columns"]
    assert next(each for each in columns if each["name"] == "name")["treatment"] == "removed"
    age = demo.get(f"/api/runs/{tried}/column", column="age")
    assert sum(age["original"]["counts"]) == sum(age["released"]["counts"]) == 1000
    assert age["charts"][0]["spec"]["config"]
    classes = demo.get(f"/api/runs/{tried}/classes")
    assert sum(size * many for size, many in classes["sizes"]) == 1000
    records = demo.get(f"/api/runs/{tried}/records")
    assert records["before"]["counts"][0][0] == 1.0
    assert records["after"]["counts"][0][0] == 0.2
    rows = demo.get(f"/api/runs/{tried}/rows?show=changed&column=sex&sort=risk&down=1&count=2")
    assert len(rows["rows"]) == 2
    assert rows["total"] == next(each for each in rows["columns"] if each["name"] == "sex")["changed"]
    own = rows["rows"][0]["class"]
    members = demo.get(f"/api/runs/{tried}/rows?class={own}")
    assert members["total"] == rows["rows"][0]["size"]
    groups = demo.get(f"/api/runs/{tried}/groups?sort=size&down=1&count=500")
    assert groups["total"] == len(groups["rows"]) == told["summary"]["classes"]
    assert sum(each["size"] for each in groups["rows"]) == 1000
    assert demo.ask("GET", f"/api/runs/{tried}/rows?show=secrets").status == 400
    suda = demo.get(f"/api/runs/{tried}/suda")
    assert suda["before"]["records"] == 1000 > suda["after"]["records"]
    assert list(suda["worst"][0]["contributions"]) == list(suda["before"]["contributions"])
    stages = demo.get(f"/api/runs/{tried}/stages")
    assert {"read", "verify", "measure", "write"} <= set(stages)
    assert 0 < sum(stages.values()) <= told["seconds"]
    attack = demo.get(f"/api/runs/{tried}/attack")
    assert attack["linkage"] <= attack["bound"] == 0.2
    assert attack["subsets"]
    assert demo.ask("GET", f"/api/runs/{tried}/measures").status == 404  # the internal report has them
    report = demo.ask("GET", f"/api/runs/{tried}/public/report.html")
    assert "sandbox" in report.headers["content-security-policy"]
    assert "script-src" not in report.headers["content-security-policy"]
    assert demo.ask("GET", f"/api/runs/{tried}/nothing").status == 404
    assert demo.ask("GET", f"/api/runs/{tried}/secret.zip").status == 404


def test_both_checkers_can_be_asked_again(demo: Visitor, tried: str) -> None:
    job = demo.post(f"/api/runs/{tried}/verify")["job"]
    seen = wait_for(lambda: _over(demo.get(f"/api/jobs/{job}")), "both checkers")
    assert [each["holds"] for each in seen["result"]["checkers"]] == [True, True]


def _over(told: Any) -> Any:
    return told if told["state"] in ("done", "failed", "cancelled") else None


def test_everything_tried_is_on_one_map(demo: Visitor, tried: str) -> None:
    before = demo.get("/api/session")["policy"]["text"]
    coarser = demo.run({"privacy.k": 20})
    failed = demo.run({"privacy.k": 5000})
    assert coarser["state"] == "done"
    assert failed["state"] == "failed"
    assert failed["problems"]
    found = demo.get("/api/map")
    points = {point["run"]: point for point in found["points"]}
    assert {tried, coarser["id"]} <= set(points)
    assert points[coarser["id"]]["loss"] > points[tried]["loss"]
    assert points[tried]["pareto"]
    assert failed["id"] not in points
    rows = found["chart"]["spec"]["data"]["values"]
    assert {(row["risk"], row["loss"]) for row in rows} == {(each["risk"], each["loss"]) for each in points.values()}
    assert demo.get("/api/session")["policy"]["text"] == before
    demo.post(f"/api/runs/{coarser['id']}/take")
    assert demo.get("/api/session")["policy"]["complete"]["privacy"]["k"] == 20
    demo.post("/api/undo")
    demo.ask("DELETE", f"/api/runs/{failed['id']}")
    assert demo.ask("GET", f"/api/runs/{failed['id']}").status == 404


def test_a_node_of_the_lattice_is_taken(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.opened(
        "few.csv",
        b"zip,age,illness\n" + b"".join(b"%05d,%d,x%d\n" % (2138 + i % 4, 30 + i % 8, i % 5) for i in range(160)),
    )
    visitor.post(
        "/api/policy",
        {
            "text": "[privacy]\nk = 8\n[method]\nname = 'lattice'\n"
            "[columns.zip]\nrole = 'quasi-identifier'\ntype = 'nominal'\n"
            "hierarchy = {mask = 2}\n[columns.age]\nrole = 'quasi-identifier'\nhierarchy = {intervals = [2, 4]}\n"
            "[columns.illness]\nrole = 'other'\n"
        },
        method="PUT",
    )
    seen = visitor.job("lattice")
    assert seen["state"] == "done", seen["problems"]
    lattice = seen["result"]
    assert lattice["columns"] == ["zip", "age"]
    assert len(lattice["nodes"]) == lattice["size"]
    other = next(node for node in lattice["nodes"] if node["holds"] and node["levels"] != lattice["best"])
    levels = dict(zip(lattice["columns"], other["levels"], strict=True))
    visitor.post("/api/decision", {"set": {"method.levels": levels}})
    done = visitor.run()
    assert done["state"] == "done", done["problems"]
    assert done["summary"]["classes"] == other["classes"]


def test_the_data_holder_chooses_step_by_step(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    visitor.post(
        "/api/decision", {"set": {"method.name": "mu-argus"}, "unset": ["columns.charge.t", "columns.disease.l"]}
    )
    first = visitor.job("outliers")["result"]
    choice = min(first["next"], key=lambda each: each["outliers"])
    visitor.post("/api/decision", {"set": {"method.choices": [choice["column"]]}})
    second = visitor.job("outliers")["result"]
    assert second["outliers"] == choice["outliers"] <= first["outliers"]
    assert second["levels"][choice["column"]] == first["levels"][choice["column"]] + 1
    assert second["choices"] == [choice["column"]]


def test_a_run_is_ended_within_two_seconds_and_can_be_run_again(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    long = {"method.refine": 3000, "privacy.k": 4}
    ident = visitor.post("/api/runs", {"set": long}, 202)["id"]
    wait_for(lambda: visitor.get(f"/api/runs/{ident}")["curve"], "the search")
    told = visitor.get(f"/api/runs/{ident}")
    assert told["state"] == "running"
    wait_for(lambda: 0 < visitor.get(f"/api/runs/{ident}")["share"] < 1, "its progress")
    process = _process(made, ident)
    began = time.monotonic()
    assert visitor.post(f"/api/runs/{ident}/cancel")["state"] == "cancelled"
    assert time.monotonic() - began < 2
    assert not _lives(process)
    assert visitor.get(f"/api/runs/{ident}")["state"] == "cancelled"
    assert visitor.run()["state"] == "done"


def _process(made: Studio, ident: str) -> int:
    session = [*made.sessions][-1]  # the youngest
    process = session.runs[ident].job.process
    assert process is not None
    return process.pid


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_run_survives_a_browser_that_goes_away(made: Studio, tmp_path: Path) -> None:
    visitor = Visitor.let_in(made)
    visitor.opened("patients.csv", some_patients(tmp_path))
    visitor.post("/api/policy", {"text": read_demo_policy()}, method="PUT")
    ident = visitor.post("/api/runs", {}, 202)["id"]
    back = Visitor(made.port)  # the same cookie, another connection: a browser that was closed and opened again
    back.cookie = visitor.cookie
    del visitor
    assert back.over(ident)["state"] == "done"
    assert [run["id"] for run in back.get("/api/session")["runs"]] == [ident]


def test_a_run_that_is_killed_is_told_as_such(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    ident = visitor.post("/api/runs", {"set": {"method.refine": 3000}}, 202)["id"]
    wait_for(lambda: visitor.get(f"/api/runs/{ident}")["curve"], "the search")
    os.kill(_process(made, ident), 9)
    told = visitor.over(ident)
    assert told["state"] == "failed"
    assert "killed the run" in told["problems"][0]["what"]


def test_two_runs_at_once_and_others_wait() -> None:
    with studio(StudioLimits(waiting=2)) as made:
        visitor = Visitor.let_in(made)
        visitor.demo()
        long = {"set": {"method.refine": 3000}}
        going = [visitor.post("/api/runs", long, 202)["id"] for _ in range(4)]
        refused = visitor.ask("POST", "/api/runs", long)
        assert refused.status == 429
        wait_for(lambda: _states(visitor, going) == ["running", "running", "queued", "queued"], "two runs at once")
        assert visitor.get(f"/api/runs/{going[3]}")["queued"] == 1
        visitor.post(f"/api/runs/{going[3]}/cancel")
        visitor.post(f"/api/runs/{going[0]}/cancel")
        wait_for(lambda: _states(visitor, going) == ["cancelled", "running", "running", "cancelled"], "the next one")
        folder = made.sessions.folder
    assert not folder.exists()


def _states(visitor: Visitor, idents: list[str]) -> list[str]:
    return [visitor.get(f"/api/runs/{ident}")["state"] for ident in idents]


def test_refinement_by_the_clock_is_repeated_by_its_steps(made: Studio, tmp_path: Path) -> None:
    table = some_patients(tmp_path)
    visitor = Visitor.let_in(made)
    visitor.opened("patients.csv", table)
    visitor.post("/api/policy", {"text": read_demo_policy()}, method="PUT")
    visitor.post("/api/decision", {"set": {"method.refine": 1}, "unset": ["columns.charge.t", "columns.disease.l"]})
    done = visitor.run()
    assert done["state"] == "done", done["problems"]
    shares = [share for _, share in done["curve"]]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 1
    assert done["name"] == "mdav, k = 5, refined 1 s"
    release = as_the_command_does(visitor, done["id"], table, "patients.csv", tmp_path)
    public = unpacked(visitor, done["id"], "public", tmp_path / "studio")
    assert content(public)["release.csv"] == content(release / "public")["release.csv"]


def some_patients(folder: Path) -> bytes:
    """The first of the demo's patients."""
    write_demo_table(folder / "all.csv")
    return b"".join((folder / "all.csv").read_bytes().splitlines(keepends=True)[:300])


def test_the_demo_of_the_studio_is_the_demo_of_the_command(demo: Visitor) -> None:
    assert demo.get("/api/session")["policy"]["text"] == read_demo_policy()
