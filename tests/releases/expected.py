"""What the release of a request must be, in plain words for a judge that knows nothing of kinfold."""

from __future__ import annotations

from typing import Any

from releases.requests import Request

SUPPRESSING = ("datafly", "mu-argus")  # these may leave records out without being asked


def expected(drawn: Request) -> dict[str, Any]:
    """Return what was asked for, and what must not be lost or there."""
    confidential = drawn.of("confidential")
    told = {name: drawn.columns[name] for name in confidential}
    rows = drawn.n - _left_out(drawn)
    gone = _gone(drawn)
    return {
        "k": drawn.k,
        "joint": drawn.privacy.get("joint", False),
        "t": _levels(drawn),
        **_diversity(drawn),
        **{key: drawn.privacy[key] for key in ("p", "alpha") if key in drawn.privacy},
        "quasi-identifier": drawn.of("quasi-identifier"),
        "confidential": confidential,
        "distance": {name: _distance(drawn.asked[name]) for name in confidential},
        "told apart by text": [name for name, column in told.items() if column.as_text],
        "values": {name: column.texts() for name, column in told.items() if column.as_text},
        "gone": gone,
        "kept": [name for name in drawn.columns if name not in gone],
        "most": rows,
        "least": drawn.k if _may_suppress(drawn) else rows,
    }


def _levels(drawn: Request) -> dict[str, float]:
    asked = {name: drawn.asked[name].get("t", drawn.privacy.get("t")) for name in drawn.of("confidential")}
    return {name: level for name, level in asked.items() if level is not None}


def _diversity(drawn: Request) -> dict[str, Any]:
    if "l" not in drawn.privacy:
        return {}
    l, kind = drawn.privacy["l"], drawn.privacy["l_kind"]
    level = [l, drawn.privacy["c"]] if kind == "recursive" else l
    return {"l" if kind == "distinct" else kind: dict.fromkeys(drawn.of("confidential"), level)}


def _distance(asked: dict[str, Any]) -> str:
    if asked["type"] != "nominal":
        return str(asked.get("distance", "ordered"))
    return "hierarchical" if "hierarchy" in asked else "equal"


def _gone(drawn: Request) -> list[str]:
    unnamed = [name for name in drawn.columns if name not in drawn.asked]
    return drawn.of("identifier") + (unnamed if drawn.output.get("others") == "drop" else [])


def _left_out(drawn: Request) -> int:
    """How many records have a null where the policy says that such records go."""
    wanting = [drawn.columns[name].values for name, asked in drawn.asked.items() if asked.get("missing") == "drop"]
    return sum(any(values[row] is None for values in wanting) for row in range(drawn.n))


def _may_suppress(drawn: Request) -> bool:
    if drawn.generalizing and drawn.output["suppressed"] == "star":
        return False
    return drawn.method in SUPPRESSING or bool(drawn.settings.get("suppression"))
