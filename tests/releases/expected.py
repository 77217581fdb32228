"""What the release of a request must be, in plain words for a judge that knows nothing of kinfold."""

from typing import Any

from releases.requests import ROW, Request

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
        **{
            key: drawn.privacy[key]
            for key in ("p", "alpha", "beta", "beta_kind", "delta", "average_risk", "risk_share")
            if key in drawn.privacy
        },
        "quasi-identifier": drawn.of("quasi-identifier"),
        "confidential": confidential,
        "distance": {name: _distance(drawn.asked[name]) for name in confidential},
        "told apart by text": [name for name, column in told.items() if column.as_text],
        "values": {name: column.texts() for name, column in told.items() if column.as_text},
        "people": _people(drawn),
        "ordered": {name: _order(drawn, name) for name in confidential},
        "groups": {name: _groups(drawn.asked[name]) for name in confidential},
        "gone": gone,
        "kept": [name for name in drawn.columns if name not in gone],
        "most": rows,
        "least": drawn.k if _may_suppress(drawn) else rows,
    }


def _people(drawn: Request) -> dict[str, str]:
    """Whose each row was, by what is released of its number."""
    if "unit" not in drawn.privacy:
        return {}
    return dict(zip(drawn.columns[ROW].values, drawn.columns[drawn.privacy["unit"]].values, strict=True))


def _order(drawn: Request, name: str) -> list[str]:
    """The values of a column in their order, as text: missing first."""
    values = {value for value in drawn.columns[name].values if value is not None}
    declared = drawn.asked[name].get("order")
    return ["", *map(str, [each for each in declared if each in values] if declared else sorted(values))]


def _groups(asked: dict[str, Any]) -> dict[str, str]:
    """The group of each value, where a hierarchy has one level of groups."""
    return dict(asked.get("hierarchy", {}).get("levels", ()))


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
