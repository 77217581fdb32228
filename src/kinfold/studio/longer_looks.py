"""Longer looks, each in a process of its own: the lattice, mu-Argus's outliers, both checkers, the script of charts.

So is compiling the kernels, which is done once for a machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kinfold import flow
from kinfold.request.policy import Policy
from kinfold.studio.worker import Tell

MOST_NODES = 20_000  # of a lattice that is listed whole


def lattice(request: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Look at every node of the lattice; of a large one at the best alone."""
    tell({"event": "progress", "stage": "plan", "share": 0.1})
    found = flow.lattice(Path(request["source"]), Policy.load(request["policy"]))
    whole = found.size <= MOST_NODES
    told = (
        found.to_dict() if whole else {"columns": list(found.nodes.domain.names), "proved": found.proved, "nodes": []}
    )
    if not whole and found.best is not None:
        told |= {"best": found.best.levels, "nodes": [found.best.to_dict() | {"minimal": False}]}
    told |= {"heights": list(found.nodes.domain.heights), "size": found.size, "partial": not whole}
    return _kept(request, told)


def outliers(request: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Say where mu-Argus stands after the data holder's choices, and where one more would lead."""
    tell({"event": "progress", "stage": "plan", "share": 0.1})
    policy = Policy.load(request["policy"])
    found = flow.outliers(Path(request["source"]), policy)
    combinations = [{"columns": list(names), "records": n} for names, n in found.combinations.items()]
    further = [{"column": name, "level": found.levels[name] + 1, "outliers": n} for name, n in found.next.items()]
    told = {"levels": found.levels, "heights": found.heights, "outliers": found.outliers}
    return _kept(
        request,
        {**told, "combinations": combinations[:50], "choices": list(policy.method.choices), "next": further},
    )


def verify(request: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Ask both checkers about the file as written."""
    public = Path(request["release"]) / "public"
    found, names = [], {"engine": False, "plain": True}
    for name, twice in names.items():
        tell({"event": "progress", "stage": "verify", "share": 0.5 if twice else 0.1})
        verdict = flow.verify(public, twice=twice)
        found.append({"name": name, "holds": verdict.holds, "promises": [asdict(each) for each in verdict.findings]})
    return _kept(request, {"checkers": found})


def script(request: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Make the script that draws charts in a browser."""
    from kinfold.release.report.chart import script as bundle

    tell({"event": "progress", "stage": "script", "share": 0.1})
    (Path(request["folder"]) / "vega.js").write_text(bundle(), encoding="utf-8")
    return {}


def warmup(_: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Compile the kernels that most runs need, so that no run has to."""
    flow.compile_kernels(lambda done, total: tell({"event": "progress", "stage": "compile", "share": done / total}))
    return {}


def _kept(request: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
    path = Path(request["folder"]) / "result.json"
    path.write_text(json.dumps(value, allow_nan=False, default=str), encoding="utf-8")
    return {}
