"""One point of the grid, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kinfold.errors import KinfoldError
from kinfold.request.methods import strangers
from kinfold.request.policy import Policy


@dataclass(frozen=True)
class Setting:
    """A method at a k, and at a t if one is compared."""

    method: str
    k: int
    t: float | None = None

    def applied(self, policy: Policy) -> Policy:
        """Return the policy at this point, checked like any other."""
        values = policy.model_dump(exclude_unset=True)
        values["privacy"] |= {"k": self.k} | ({} if self.t is None else {"t": self.t})
        method = values.get("method", {}) | {"name": self.method}
        unknown = strangers(self.method)  # keys that other methods have
        values["method"] = {key: value for key, value in method.items() if key not in unknown}
        return Policy.parse(values)

    def __str__(self) -> str:
        return f"{self.method}, k = {self.k}" + ("" if self.t is None else f", t = {self.t:g}")


@dataclass(frozen=True)
class Outcome:
    """What came of a setting: its measures, or why there are none."""

    setting: Setting
    measures: Mapping[str, Any] | None
    failure: str = ""


def attempt(source: Any, policy: Policy, setting: Setting) -> Outcome:
    """Make one release in memory and measure it; a request that cannot be met is an outcome too."""
    from kinfold.flow import anonymize

    try:
        release = anonymize(source, setting.applied(policy))
    except KinfoldError as error:
        return Outcome(setting, None, error.problems[0].what)
    facts = {"seconds": round(release.seconds, 3), "steps": release.plan.steps}
    return Outcome(setting, {**release.measures.to_dict(), **facts})
