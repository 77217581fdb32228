"""The interface of docs/studio-interface.md, spoken to as a page does, over a real socket."""

from __future__ import annotations

import http.client
import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from kinfold.demo import read_demo_policy
from kinfold.hierarchies import read_arx
from kinfold.policy.model import Policy
from kinfold.studio.guard import ROUTES
from kinfold.studio.server import LOOPBACK, Studio
from studio.questions import policy_with_questions
from studio.tables import diagnoses, households
from studio.visitor import Visitor, wait_for

DOC = Path(__file__).parents[2] / "docs/studio-interface.md"


def column(state: Any, name: str) -> Any:
    return next(each for each in state["columns"] if each["name"] == name)


def test_the_page_comes_with_its_files_and_a_strict_policy(demo: Visitor) -> None:
    page = demo.ask("GET", "/")
    assert page.status == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["cache-control"] == "no-store"
    for path in re.findall(r'(?:src|href)="(/static/[^"]+)"', page.body.decode()):
        assert demo.ask("GET", path).status == 200


@pytest.mark.slow
def test_the_script_of_the_charts_is_the_one_of_the_reports(demo: Visitor) -> None:
    script = demo.ask("GET", "/vega.js")
    assert script.status == 200
    assert b"window.vegaEmbed" in script.body
    assert script.headers["content-type"].startswith("text/javascript")


def test_the_state_has_every_column_with_its_profile(demo: Visitor) -> None:
    state = demo.get("/api/session")
    assert state["state"] == "ready"
    assert state["source"]["name"] == "patients.csv"
    assert state["source"]["options"]["separator"] == ","
    age = column(state, "age")
    assert age["role"] == "quasi-identifier"
    assert age["proposed"]["reason"]
    assert sum(age["histogram"]["counts"]) + age["histogram"]["missing"] == state["source"]["rows"] == 1000
    sex = column(state, "sex")["histogram"]
    assert sex["form"] == "labels"
    assert sum(sex["counts"]) + sex["rest"] + sex["missing"] == 1000
    assert column(state, "admission")["histogram"]["dates"]
    methods = {each["name"]: each for each in state["methods"]}
    assert {*methods} >= {"auto", "mdav", "lattice", "mu-argus"}
    assert all(each["sentence"] for each in methods.values())
    assert methods["univariate"]["needs"]


def test_the_state_is_sent_again_only_when_it_changed(demo: Visitor) -> None:
    version = demo.get("/api/session")["version"]
    assert demo.ask("GET", f"/api/session?since={version}").status == 304
    demo.post("/api/step", {"step": "protect"})
    assert demo.ask("GET", f"/api/session?since={version}").status == 304  # only a reload reads the step
    assert demo.get("/api/session")["step"] == "protect"
    demo.post("/api/decision", {"set": {"privacy.k": 6}})
    assert demo.get(f"/api/session?since={version}")["policy"]["complete"]["privacy"]["k"] == 6
    demo.post("/api/undo")


def test_rows_come_page_by_page(demo: Visitor) -> None:
    first, last = demo.get("/api/rows?from=0&count=3"), demo.get("/api/rows?from=997&count=50")
    assert len(first["cells"]) == 3
    assert len(last["cells"]) == 3
    assert last["rows"] == 1000
    across = demo.get("/api/rows?from=190&count=20")["cells"]
    assert across == demo.get("/api/rows?from=190&count=5")["cells"] + demo.get("/api/rows?from=195&count=15")["cells"]
    assert demo.get("/api/rows?from=5000&count=9")["cells"] == []
    assert demo.ask("GET", "/api/rows?from=-1").status == 400


def test_the_risk_follows_the_roles(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    before = visitor.get("/api/risk")
    assert "age" in before["quasi"]
    assert before["unique"] == 1.0
    changes = {f"columns.{name}.role": "other" for name in before["quasi"] if name != "sex"}
    visitor.post("/api/decision", {"set": changes, "unset": ["columns.income.missing", "columns.zip.average"]})
    assert visitor.get("/api/risk")["classes"] == 3


def test_a_decision_keeps_comments_and_can_be_taken_back_and_forth(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    visitor.decide(privacy__k=7, privacy__t=0.4)
    state = visitor.get("/api/session")
    text = state["policy"]["text"]
    assert "k = 7 # records that share each combination of quasi-identifiers" in text
    assert state["policy"]["complete"]["privacy"]["t"] == 0.4
    assert state["undo"] == {"steps": 1, "next": "k: 5 → 7; t: none → 0.4"}
    visitor.post("/api/undo")
    state = visitor.get("/api/session")
    assert state["policy"]["text"] == read_demo_policy()
    assert state["redo"]["steps"] == 1
    visitor.post("/api/redo")
    assert visitor.get("/api/session")["policy"]["text"] == text
    assert visitor.ask("POST", "/api/redo").status == 409
    assert [each["by"] for each in visitor.get("/api/session")["log"]] == ["source", "form", "undo", "redo"]


def test_a_k_that_no_class_can_have_is_refused_where_it_is_typed(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.opened("few.csv", b"band,age\n" + b"".join(b"%d,%d\n" % (row // 2, 20 + row) for row in range(12)))
    answer = visitor.ask("POST", "/api/decision", {"set": {"privacy.k": 99_999}})
    assert answer.status == 422
    assert answer.problems[0]["what"] == "k = 99,999 is more than the 12 records of the table"
    assert answer.problems[0]["key"] == ["privacy", "k"]
    text = visitor.get("/api/session")["policy"]["text"]
    assert visitor.ask("PUT", "/api/policy", {"text": text.replace("\nk = ", "\nk = 9999 # ")}).status == 422
    visitor.ask("DELETE", "/api/policy/draft")
    answer = visitor.ask("POST", "/api/decision", {"set": {"privacy.k": 7, "privacy.unit": "band"}})
    assert "more than the 6 people" in answer.problems[0]["what"]
    visitor.decide(privacy__k=6)
    visitor.post("/api/decision", {"set": {"columns.age.role": "other"}})  # the old k stays


def test_a_warning_that_was_settled_is_gone(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    rows = "".join(f"{20 + row % 9 if row % 7 else ''},{'fm'[row % 2]}\n" for row in range(60))
    visitor.opened("people.csv", f"age,sex\n{rows}".encode())
    visitor.post("/api/decision", {"set": {"columns.age.role": "quasi-identifier"}, "unset": ["columns.age.missing"]})
    warnings = visitor.get("/api/session")["source"]["warnings"]
    assert [each for each in warnings if each.startswith("'age'") and "set `missing` in the policy" in each]
    visitor.decide(columns__age__missing="separate")
    assert visitor.get("/api/session")["source"]["warnings"] == []


def test_a_decision_that_is_no_policy_changes_nothing(demo: Visitor) -> None:
    before = demo.get("/api/session")
    answer = demo.ask("POST", "/api/decision", {"set": {"privacy.k": 1}})
    assert answer.status == 422
    assert answer.problems[0]["key"] == ["privacy", "k"]
    assert demo.ask("POST", "/api/decision", {"set": {"privacy": {"a": [1]}}}).status == 422
    assert demo.ask("POST", "/api/decision", {"set": [["x"]]}).status == 400
    assert demo.ask("POST", "/api/decision", {}).status == 400
    assert demo.get("/api/session")["policy"] == before["policy"]


def test_names_with_dots_are_paths_of_their_own(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.opened("dots.csv", b"a.b,..,c/d\n" + b"".join(b"%d,%d,x\n" % (i % 7, i % 5) for i in range(60)))
    visitor.post("/api/decision", {"set": [[["columns", "a.b", "role"], "confidential"]]})
    visitor.post(
        "/api/decision", {"set": [[["columns", "..", "role"], "other"], [["columns", "..", "type"], "nominal"]]}
    )
    state = visitor.get("/api/session")
    assert [column(state, name)["role"] for name in ("a.b", "..")] == ["confidential", "other"]
    for name in ("a.b", "..", "c/d"):
        assert visitor.get("/api/hierarchy", column=name)["column"] == name


def test_errors_of_the_text_have_their_lines(demo: Visitor) -> None:
    before = demo.get("/api/session")["policy"]["text"]
    wrong = before.replace("k = 5", "k = 1").replace('role = "identifier"', 'role = "nobody"')
    answer = demo.ask("PUT", "/api/policy", {"text": wrong})
    lines = wrong.splitlines()
    found = {tuple(each["key"]): lines[each["line"] - 1] for each in answer.problems}
    assert answer.status == 422
    assert found[("privacy", "k")].startswith("k = 1")
    assert found[("columns", "name", "role")].startswith('role = "nobody"')
    broken = demo.ask("PUT", "/api/policy", {"text": "[privacy]\nk = \n"})
    assert broken.problems[0]["line"] == 2
    assert demo.get("/api/session")["policy"]["text"] == before
    demo.post("/api/policy/draft", method="DELETE")


@pytest.mark.slow
def test_nothing_is_run_while_the_page_shows_another_policy(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    valid = visitor.demo()["policy"]["text"]
    wrong = valid.replace("k = 5", "k = 50x")
    assert visitor.ask("PUT", "/api/policy", {"text": wrong}).status == 422
    state = visitor.get("/api/session")
    assert state["policy"]["text"] == valid
    assert state["policy"]["draft"]["text"] == wrong  # a reload shows it, and so does another tab
    assert state["policy"]["draft"]["problems"][0]["line"] == 1 + wrong[: wrong.index("50x")].count("\n")
    for path, body in (("/api/runs", {}), ("/api/runs", {"set": {"privacy.k": 3}}), ("/api/jobs", {"kind": "lattice"})):
        refused = visitor.ask("POST", path, body)
        assert refused.status == 409
        assert "the policy text is not valid (line " in refused.problems[0]["what"]
    assert state["runs"] == visitor.get("/api/session")["runs"] == []
    visitor.post("/api/policy/draft", method="DELETE")
    assert visitor.get("/api/session")["policy"]["draft"] is None
    visitor.ask("PUT", "/api/policy", {"text": wrong})
    visitor.post("/api/policy", {"text": valid}, method="PUT")  # which is the policy already
    assert visitor.get("/api/session")["policy"]["draft"] is None
    visitor.decide(privacy__k=50)  # in another tab
    assert "the policy was changed" in visitor.ask("POST", "/api/runs", {"policy": valid}).problems[0]["what"]
    shown = visitor.get("/api/session")["policy"]["text"]
    started = visitor.post("/api/runs", {"policy": shown}, 202)["id"]
    assert visitor.get(f"/api/runs/{started}")["asked"]["k"] == 50
    visitor.post(f"/api/runs/{started}/cancel")
    visitor.ask("PUT", "/api/policy", {"text": wrong})
    assert visitor.demo()["policy"]["draft"] is None  # another table


def test_the_form_follows_the_text(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    text = visitor.get("/api/session")["policy"]["text"].replace("k = 5", "k = 9")
    visitor.post("/api/policy", {"text": "# mine\n" + text}, method="PUT")
    state = visitor.get("/api/session")
    assert state["policy"]["complete"]["privacy"]["k"] == 9
    visitor.decide(privacy__k=4)
    assert visitor.get("/api/session")["policy"]["text"].startswith("# mine\n")


def test_a_policy_reads_no_file_outside_the_session(demo: Visitor, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a;*\n")
    for place in (str(tmp_path / "h.csv"), "../h.csv", "hierarchies/../../h.csv", "/etc/passwd", "hierarchies/no.csv"):
        answer = demo.ask("POST", "/api/decision", {"set": {"columns.zip.hierarchy": {"file": place}}})
        assert answer.status == 422, place
        assert "not here" in answer.problems[0]["what"]
    assert demo.ask("PUT", "/api/hierarchy?column=zip", {"spec": {"file": "/etc/passwd"}}).status == 422


def test_a_population_is_a_table_in_the_workspace(made: Studio, tmp_path: Path) -> None:
    visitor, workspace = Visitor.let_in(made), made.sessions.workspace
    visitor.demo()
    (tmp_path / "people.csv").write_text("age,sex,zip\n30,f,10115\n")
    (workspace / "link.csv").symlink_to(tmp_path / "people.csv")
    keys = (("privacy", "population"), ("output", "surrogate_secret"), ("tables", "home"))
    for place in ("nowhere.csv", str(tmp_path / "people.csv"), "../people.csv", "link.csv", "/etc/passwd", "."):
        values: list[Any] = [{"table": place, "k": 3}, place, {"file": place}]
        for key, value in zip(keys, values, strict=True):
            answer = visitor.ask("POST", "/api/decision", {"set": [[list(key), value]]})
            assert answer.status == 422, (place, key)
            assert f"the file is not in {workspace}" in answer.problems[0]["what"]
            assert "--workspace" in answer.problems[0]["fix"]
    visitor.post("/api/decision", {"set": [[["privacy", "population"], {"table": "people.csv", "k": 3}]]}, status=422)
    (workspace / "people.csv").write_text("age,sex\n30,f\n")
    visitor.post("/api/decision", {"set": [[["privacy", "population"], {"table": "people.csv", "k": 3}]]})
    (problem,) = visitor.get("/api/check")["problems"]
    assert "privacy.population.table: no column 'zip'" in problem["what"]


@pytest.mark.slow
def test_a_run_counts_the_people_of_a_table_in_the_workspace(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    (made.sessions.workspace / "zips.csv").write_text("zip\n" + "10115\n10117\n10243\n" * 4)
    visitor.opened("sample.csv", b"zip\n" + b"10115\n10117\n10115\n10117\n")
    column = (
        '[columns.zip]\nrole = "quasi-identifier"\nhierarchy = { mask = 5 }\ntype = "nominal"\naverage = "generalize"\n'
    )
    population = 'population = { table = "zips.csv", k = 8, presence = [0.0, 0.6] }\n'
    text = f'[privacy]\nk = 2\n{population}[method]\nname = "lattice"\n{column}'
    visitor.post("/api/policy", {"text": text}, method="PUT")
    run = visitor.run()
    assert run["state"] == "done", run["problems"]
    assert "8 people of the population in every class" in json.dumps(visitor.get(f"/api/runs/{run['id']}/verdict"))
    assert 'table = "zips.csv"' in visitor.ask("GET", f"/api/runs/{run['id']}/policy.toml").body.decode()


def test_what_would_stop_a_run_is_told_before(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    assert visitor.get("/api/check")["problems"] == []
    visitor.post("/api/decision", {"unset": ["columns.income.missing"]})
    problem = visitor.get("/api/check")["problems"][0]
    text = visitor.get("/api/session")["policy"]["text"].splitlines()
    assert "income" in problem["what"]
    assert text[problem["line"] - 1] == "[columns.income]"


@pytest.mark.slow
def test_reading_options_are_guessed_changed_and_taken_back(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    state = visitor.opened("households.csv", households())
    assert state["source"]["options"]["decimal"] == ","
    assert column(state, "income")["kind"] == "continuous"
    assert column(state, "income")["missing"] == 6
    visitor.post("/api/source/options", {"decimal": "."})
    state = wait_for(lambda: _ready(visitor), "the table read otherwise")
    assert column(state, "income")["kind"] == "nominal"
    visitor.post("/api/undo")
    assert column(wait_for(lambda: _ready(visitor), "the table"), "income")["kind"] == "continuous"
    visitor.post("/api/source/options", {"decimal": "."})
    wait_for(lambda: _ready(visitor), "the table")
    visitor.post("/api/source/options", {"decimal": None})
    state = wait_for(lambda: _ready(visitor), "the table as guessed")
    assert state["policy"]["values"]["source"]["decimal"] == ","
    assert visitor.ask("POST", "/api/source/options", {"path": "/etc/passwd"}).status == 400


def _ready(visitor: Visitor) -> Any:
    state = visitor.get("/api/session")
    return state if state["state"] == "ready" else None


def test_a_file_that_is_no_table_is_told(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    assert visitor.upload("broken.parquet", b"PAR1 this is none").status == 200
    state = wait_for(lambda: _failed(visitor), "the failure")
    assert state["source"]["problems"][0]["what"]
    assert "/" not in state["source"]["problems"][0]["what"].replace("n/a", "")
    assert visitor.ask("POST", "/api/runs").status == 409
    assert visitor.ask("GET", "/api/rows").status == 409
    assert visitor.opened("fine.csv", b"a,b\n1,2\n3,4\n")["source"]["rows"] == 2


def test_a_sheet_of_a_workbook_is_chosen(made: Studio, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for title in ("people", "key"):
        sheet = book.create_sheet(title)
        for row in [("age", "sex"), *((20 + n % 9, "fm"[n % 2]) for n in range(30))]:
            sheet.append(row)
    book.save(tmp_path / "two.xlsx")
    visitor = Visitor.let_in(made)
    visitor.upload("two.xlsx", (tmp_path / "two.xlsx").read_bytes())
    state = wait_for(lambda: _failed(visitor), "the failure")
    assert state["source"]["problems"][0]["choices"] == ["people", "key"]
    visitor.post("/api/source/options", {"sheet": "people"})
    assert [each["name"] for each in visitor.ready()["columns"]] == ["age", "sex"]


@pytest.mark.slow
def test_a_file_that_could_not_be_opened_is_read_otherwise(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    assert visitor.ask("POST", "/api/source/options", {"header": 0}).status == 409
    rows = "".join(f"{20 + i % 7},{'fm'[i % 2]},{'flu' if i % 3 else 'gout'}\n" for i in range(40))
    visitor.upload("no header.csv", rows.encode())
    state = wait_for(lambda: _failed(visitor), "the failure")
    assert state["source"]["name"] == "no header.csv"
    assert "source.header = 0" in state["source"]["problems"][0]["fix"]
    assert {"separator", "encoding", "header", "skip", "decimal"} <= {*state["source"]["reading"]}
    assert visitor.ask("POST", "/api/source/options", {"header": -1}).status == 422
    visitor.post("/api/source/options", {"header": 0})
    state = visitor.ready()
    assert [each["name"] for each in state["columns"]] == ["column1", "column2", "column3"]
    assert state["policy"]["values"]["source"]["header"] == 0
    assert state["source"]["rows"] == 40
    visitor.post(
        "/api/source/options", {"separator": ";", "encoding": "utf-16"}
    )  # it fails once more, and is no dead end
    assert wait_for(lambda: _failed(visitor), "another failure")["source"]["reading"]
    visitor.post("/api/source/options", {"separator": None, "encoding": None})
    assert wait_for(lambda: _ready(visitor), "the table again")["source"]["rows"] == 40
    visitor.upload("titled.csv", b'A "report;\n\nage;sex;ill\n' + rows.replace(",", ";").encode())
    state = visitor.ready()  # the line of the header is found
    assert [each["name"] for each in state["columns"]] == ["age", "sex", "ill"]
    assert state["policy"]["values"]["source"]["header"] == 3
    assert state["source"]["options"]["separator"] == ";"


def _failed(visitor: Visitor) -> Any:
    state = visitor.get("/api/session")
    return state if state["state"] == "failed" else None


def test_hierarchies_are_built_step_by_step(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    flat = visitor.get("/api/hierarchy", column="marital_status")
    assert flat["spec"] is None
    assert flat["height"] == 1
    labels = [child["label"] for child in flat["tree"]["children"]]
    merge = {"merge": labels[:2], "name": "together", "level": 1}
    seen = visitor.post("/api/hierarchy?column=marital_status", {**merge, "try": True}, method="PUT")
    assert seen["height"] == 2
    assert visitor.get("/api/hierarchy", column="marital_status")["height"] == 1
    visitor.post("/api/hierarchy?column=marital_status", merge, method="PUT")
    tree = visitor.get("/api/hierarchy", column="marital_status")["tree"]
    group = next(child for child in tree["children"] if child["label"] == "together")
    assert sorted(child["label"] for child in group["children"]) == sorted(labels[:2])
    assert group["count"] == sum(child["count"] for child in group["children"])
    visitor.post(
        "/api/hierarchy?column=marital_status", {"rename": "together", "name": "pair", "level": 1}, method="PUT"
    )
    assert "pair" in visitor.get("/api/session")["policy"]["text"]
    visitor.post("/api/hierarchy?column=marital_status", {"part": "pair", "level": 1}, method="PUT")
    assert visitor.get("/api/hierarchy", column="marital_status")["height"] == 1
    for _ in range(3):
        visitor.post("/api/undo")
    assert visitor.get("/api/session")["policy"]["text"] == read_demo_policy()


def test_the_effect_of_each_level_is_that_of_the_labels_in_the_table(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    rows = [(age, sex) for age, sex in zip([31, 32, 33, 41, 42, 58, 58, ""] * 3, "ffmmffmm" * 3, strict=True)][:-1]
    visitor.opened("few.csv", ("age,sex\n" + "\n".join(f"{age},{sex}" for age, sex in rows) + "\n").encode())
    roles = {f"columns.{name}.role": "quasi-identifier" for name in ("age", "sex")}
    visitor.post("/api/decision", {"set": roles})
    visitor.post("/api/hierarchy?column=age", {"spec": {"intervals": [10, 20]}}, method="PUT")
    shares = visitor.get("/api/hierarchy/effect", column="age")
    together, alone = [], []
    for width in (1, 10, 20, None):
        labels = [None if age == "" else age // width if width else 0 for age, _ in rows]
        for shares_found, values in ((together, zip(labels, (sex for _, sex in rows), strict=True)), (alone, labels)):
            counted = Counter(values)
            shares_found.append(sum(1 for size in counted.values() if size == 1) / len(rows))
    assert shares["unique"] == pytest.approx(together)
    assert shares["alone"] == pytest.approx(alone)
    assert len(visitor.get("/api/hierarchy/effect", column="sex")["unique"]) == 2


@pytest.mark.parametrize(
    ("name", "spec", "height"),
    [
        ("zip", {"mask": 2}, 3),
        ("age", {"intervals": [5, 10], "top": 85, "bottom": 18}, 3),
        ("admission", {"dates": ["month", "year"]}, 3),
        ("sex", {"tree": {"any": ["female", "male", "other"]}}, 2),
    ],
)
def test_hierarchies_by_the_keys_of_a_policy(demo: Visitor, name: str, spec: Any, height: int) -> None:
    seen = demo.post(f"/api/hierarchy?column={name}", {"spec": spec, "try": True}, method="PUT")
    assert seen["height"] == height
    assert seen["tree"]["count"] == 1000


def test_a_hierarchy_that_misses_values_is_refused_without_naming_them(demo: Visitor) -> None:
    answer = demo.ask("PUT", "/api/hierarchy?column=sex", {"spec": {"levels": [["female", "any"]]}})
    assert answer.status == 422
    assert "misses 2 of its 3 categories" in answer.problems[0]["what"]
    assert b"male" not in answer.body
    assert demo.ask("PUT", "/api/hierarchy?column=zip", {"spec": {"mask": 0}}).status == 422
    assert demo.ask("PUT", "/api/hierarchy?column=nobody", {"spec": {"mask": 1}}).status == 404


@pytest.mark.slow
def test_codes_get_trees_of_their_own(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.opened("diagnoses.csv", diagnoses())
    builders = {each["build"] for each in visitor.get("/api/hierarchy", column="code")["builders"]}
    assert "icd" in builders
    visitor.post("/api/hierarchy?column=code", {"build": "icd"}, method="PUT")
    top = [child["label"] for child in visitor.get("/api/hierarchy", column="code")["tree"]["children"]]
    assert any(label.startswith("E00") for label in top)
    assert visitor.ask("PUT", "/api/hierarchy?column=age", {"build": "icd"}).status == 422


def test_hierarchies_go_out_and_come_in_as_arx_has_them(made: Studio, tmp_path: Path) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    file = visitor.ask("GET", "/api/hierarchy/arx?column=age")
    path = tmp_path / "age.csv"
    path.write_bytes(file.body)
    assert read_arx(path).height == 3
    answer = visitor.ask("POST", "/api/hierarchy/arx?column=age", raw=file.body, headers={"Content-Type": "text/csv"})
    assert answer.status == 200, answer.body
    assert (
        "hierarchies/age-" in visitor.get("/api/session")["policy"]["text"]
    )  # so many values have a file of their own
    assert visitor.get("/api/hierarchy", column="age")["height"] == 3
    assert visitor.ask("POST", "/api/hierarchy/arx?column=age", raw=b"\xff\xfe").status == 422
    project = tmp_path / "project.toml"
    project.write_bytes(visitor.ask("GET", "/api/project").body)
    levels = Policy.load(project).columns["age"].hierarchy
    assert levels is not None
    assert levels.levels is not None  # a project needs no other file


def test_a_project_is_a_policy_with_its_log(made: Studio, tmp_path: Path) -> None:
    visitor, other = Visitor.let_in(made), Visitor.let_in(made)
    visitor.demo()
    visitor.decide(privacy__k=6)
    file = visitor.ask("GET", "/api/project")
    assert 'filename="patients.toml"' in file.headers["content-disposition"]
    path = tmp_path / "project.toml"
    path.write_bytes(file.body)
    assert Policy.load(path).privacy.k == 6
    other.demo()
    other.post("/api/project", {"text": file.body.decode()})
    state = other.get("/api/session")
    assert state["policy"]["complete"]["privacy"]["k"] == 6
    assert "k: 5 → 6" in [each["what"] for each in state["log"]]
    assert "#: " not in state["policy"]["text"]


def test_the_state_says_what_can_be_chosen_and_what_is_promised_now(demo: Visitor) -> None:
    state = demo.get("/api/session")
    promises = state["policy"]["promises"]
    assert "at least 5 records" in promises["k"]
    assert "1 in 5, 20%" in promises["k"]
    assert "by at most t of 1" in promises["t"]  # the demo promises t of single columns
    assert state["choices"]["others"] == ["refuse", "release", "drop"]
    assert "convex-median" in state["averages_by_type"]["ordinal"]


def test_events_tell_of_every_decision(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    connection = http.client.HTTPConnection(LOOPBACK, made.port, timeout=30)
    connection.request("GET", "/api/events", headers={"Cookie": visitor.cookie})
    stream = connection.getresponse()
    assert stream.headers["content-type"].startswith("text/event-stream")
    version = visitor.decide(privacy__k=8)["version"]
    told = ""
    while f'"version": {version}' not in told:
        told = stream.readline().decode()
        assert told
    connection.close()


def test_a_closed_table_is_forgotten(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    held = {path.name for path in made.sessions.folder.rglob("*") if path.is_file()}
    assert "patients.csv" in held
    visitor.post("/api/source/close")
    state = visitor.get("/api/session")
    assert state["state"] == "empty"
    assert state["columns"] == []
    assert state["policy"] is None


def test_every_route_is_in_the_documentation() -> None:
    text, paths = DOC.read_text(), {route.path for route in ROUTES}
    plain = {path.replace("{run}", "r1").replace("{job}", "j1").replace("{part}", "public") for path in paths}
    assert {path for path in plain if "{" not in path and path not in text} == set()


def test_a_table_of_an_sqlite_file_is_chosen(made: Studio, tmp_path: Path) -> None:
    file = tmp_path / "clinic.sqlite"
    with closing(sqlite3.connect(file)) as base, base:
        base.execute('CREATE TABLE "pa.tients" (age INTEGER, city TEXT)')
        base.executemany('INSERT INTO "pa.tients" VALUES (?, ?)', [(20 + i % 30, "ab"[i % 2]) for i in range(80)])
        base.execute("CREATE TABLE other (x INTEGER)")
    visitor = Visitor.let_in(made)
    assert visitor.upload("clinic.sqlite", file.read_bytes()).status == 200
    state = visitor.get("/api/session")
    assert state["state"] == "choosing"
    assert state["source"]["tables"] == ["other", "pa.tients"]
    assert visitor.ask("POST", "/api/source/table", {"table": "nobody"}).status == 404
    visitor.post("/api/source/table", {"table": "pa.tients"})
    state = visitor.ready()
    assert state["source"]["rows"] == 80
    assert [each["name"] for each in state["columns"]] == ["age", "city"]
    assert visitor.get("/api/rows?from=0&count=1")["cells"] == [["20", "a"]]
    assert visitor.upload("broken.sqlite", b"none of it").status == 422


@pytest.mark.parametrize("address", ["sqlite:////etc/passwd?table=x", "/etc/passwd", "http://example.org/a.csv", ""])
def test_a_database_is_a_server_and_no_file_of_this_machine(demo: Visitor, address: str) -> None:
    answer = demo.ask("POST", "/api/source/database", {"address": address})
    assert answer.status == 422
    assert demo.get("/api/session")["state"] == "ready"


def test_a_server_that_does_not_answer_is_told_without_its_password(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    asked = {"address": "postgresql://ada:secret-word@127.0.0.1:1/clinic", "table": "patients"}
    visitor.post("/api/source/database", asked)
    state = wait_for(lambda: _failed(visitor), "the failure")
    assert state["source"]["problems"]
    assert "secret-word" not in json.dumps(state)


def test_answers_are_strict_json(demo: Visitor) -> None:
    body = demo.ask("GET", "/api/session").body
    json.loads(body, parse_constant=lambda name: pytest.fail(name))


def test_a_run_waits_for_the_answers(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.demo()
    visitor.post("/api/policy", {"text": policy_with_questions()}, method="PUT")
    questions = visitor.get("/api/session")["questions"]
    assert [(each["name"], each["answer"]) for each in questions] == [("unit", ""), ("education", "")]
    problems = visitor.get("/api/check")["problems"]
    assert [each["fix"] for each in problems] == ["answer it in step 1, Open"] * 2
    assert problems[0]["what"] == "the question 'unit' is open"
    text = visitor.get("/api/session")["policy"]["text"].splitlines()
    assert [text[each["line"] - 1] for each in problems] == ["[review.unit]", "[review.education]"]
    assert visitor.ask("POST", "/api/runs", {}).status == 409
    visitor.post("/api/decision", {"set": [[["review", "unit", "answer"], "name"]]})
    assert visitor.get("/api/session")["policy"]["complete"]["privacy"]["unit"] == "name"
    visitor.post("/api/decision", {"set": [[["review", "unit", "answer"], "none"]]})
    state = visitor.get("/api/session")
    assert state["policy"]["complete"]["privacy"]["unit"] is None
    assert "unit = " not in state["policy"]["text"]
    visitor.post("/api/decision", {"set": [[["columns", "education", "role"], "remove"]]})  # a role is an answer
    assert [each["answer"] for each in visitor.get("/api/session")["questions"]] == ["none", "remove"]
    visitor.post("/api/decision", {"set": [[["columns", "education", "role"], "other"]]})  # and another one decides
    state = visitor.get("/api/session")
    assert [each["name"] for each in state["questions"]] == ["unit"]
    assert column(state, "education")["role"] == "other"
    visitor.post("/api/decision", {"set": [[["columns", "education", "role"], "quasi-identifier"]]})
    assert visitor.get("/api/check")["problems"] == []
    assert visitor.post("/api/runs", {})["id"]


@pytest.mark.slow
def test_the_keys_of_a_pattern_are_those_of_its_columns(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    rows = "".join(f"{i % 5},{i % 7},{i % 3}\n" for i in range(70))
    visitor.opened("levels.csv", f"age,L1,L2\n{rows}".encode())
    text = '[privacy]\nk = 3\n[columns]\nage = {role = "key"}\n"L*" = {role = "confidential", type = "nominal"}\n'
    visitor.post("/api/policy", {"text": text}, method="PUT")
    state = visitor.get("/api/session")
    assert [column(state, name)["role"] for name in ("L1", "L2")] == ["confidential", "confidential"]
    visitor.post("/api/decision", {"set": [[["columns", "L2", "role"], "other"]]})
    state = visitor.get("/api/session")
    assert column(state, "L2")["declared"] == {"role": "other", "type": "nominal"}
    assert column(state, "L1")["role"] == "confidential"
    assert visitor.get("/api/check")["problems"] == []
