"""What the data is still good for, in the files of a release: the audit and the internal page, never the public one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command import run, text

ROWS = "".join(
    f"{1000 if i == 0 else i % 9},{i % 5 * 10 + i % 3},2024-0{1 + i % 6}-1{i % 9},{'ab'[i % 2]},{i}\n"
    for i in range(30)
)
ROLES = ["--quasi", "turnover,staff,opened,kind", "-k", "3", "--method", "mdav", "--others", "release"]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("statistics")
    table = text(folder, "table.csv", "turnover,staff,opened,kind,weight\n" + ROWS)
    ran = run("anonymize", table, *ROLES, "--keep-order", "--out", folder / "out")
    assert ran.code == 0, ran.err
    assert "'turnover': one record makes more than 75% of the total" in ran.out
    return folder / "out"


def test_the_audit_has_numbers_before_and_after(released: Path) -> None:
    audit = json.loads((released / "internal" / "audit.json").read_text())
    found = audit["statistics"]
    original = np.array([line.split(",") for line in ROWS.splitlines()])
    shown = np.array([line.split(",") for line in (released / "public" / "release.csv").read_text().splitlines()[1:]])
    for side, table in (("before", original), ("after", shown)):
        for j, name in ((0, "turnover"), (1, "staff"), (4, "weight")):
            values = table[:, j].astype(float)
            assert found["numbers"][name][side]["mean"] == pytest.approx(values.mean())
            assert found["numbers"][name][side]["variance"] == pytest.approx(values.var())
            assert list(found["numbers"][name][side]["quantiles"].values()) == pytest.approx(
                np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
            )
        matrix = np.corrcoef(table[:, [0, 1]].astype(float).T)
        assert found["correlations"][side][0][1] == pytest.approx(matrix[0, 1])
        kinds = dict(zip(found["frequencies"]["kind"]["values"], found["frequencies"]["kind"][side], strict=True))
        assert kinds == {kind: int((table[:, 3] == kind).sum()) for kind in "ab"}
    assert found["correlations"]["columns"] == ["turnover", "staff", "opened", "weight"]
    assert found["numbers"]["opened"]["after"]["mean"].startswith("2024-0")


def test_the_internal_page_warns_and_the_public_one_is_silent(released: Path) -> None:
    internal, public = ((released / part / "report.html").read_text() for part in ("internal", "public"))
    audit = json.loads((released / "internal" / "audit.json").read_text())
    assert any("(n,k) rule" in warning for warning in audit["warnings"])
    assert any("'weight' is released as it is" in warning for warning in audit["warnings"])
    for part in ("What it is still good for", "(n,k) rule", "of their class"):
        assert part in internal
        assert part not in public
    assert "statistics" not in (released / "public" / "certificate.json").read_text()
