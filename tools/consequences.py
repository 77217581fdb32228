"""What each choice costs on the Adult file: the table of docs/choose.md, measured anew.

    python -m tools.consequences            runs every setting and writes the table into the page
    python -m tools.consequences mdav       prints the settings whose name has this word, and writes nothing

Needs the Adult file with ARX's hierarchies, found through KINFOLD_DATA or in ../shared/data. Some minutes.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kinfold

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "choose.md"
DATA = Path(os.environ.get("KINFOLD_DATA", ROOT / ".." / "shared" / "data")) / "adult"
BEGIN, END = "<!-- measured by make consequences -->\n\n", "\n\n<!-- end of what was measured -->"
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"),
    *("Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"),
)
QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")


@dataclass(frozen=True)
class Setting:
    """What is asked, and how it is told in the table."""

    method: str
    privacy: dict[str, Any]
    how: dict[str, Any] = field(default_factory=dict)
    salary: dict[str, Any] = field(default_factory=dict)
    said: str = ""

    @property
    def name(self) -> str:
        """The method, and what is special about it."""
        return f"`{self.method}`{', ' + self.said if self.said else ''}"

    @property
    def promise(self) -> str:
        """The promise in letters."""
        return ", ".join(f"{key} = {value}" for key, value in {**self.privacy, **self.salary}.items())


def settings() -> list[Setting]:
    """Return the rows of the table: k, then the method, then what is promised of the salary."""
    some = {"suppression": 0.02}
    return [
        *(Setting("mdav", {"k": k}) for k in (3, 5, 10, 20)),
        Setting("mdav", {"k": 5}, {"refine": "auto"}, said="refined"),
        *(Setting("lattice", {"k": k}, some, said="2 % may go") for k in (3, 5, 10, 20)),
        Setting("datafly", {"k": 5}, some, said="2 % may go"),
        Setting("mingen-cell", {"k": 5}),
        Setting("local-suppression", {"k": 5}),
        Setting("mdav", {"k": 5}, salary={"l": 2}),
        Setting("t-first", {"k": 5}, salary={"t": 0.2}),
        Setting("lattice", {"k": 5}, some, {"l": 2}, "2 % may go"),
        Setting("lattice", {"k": 5}, some, {"t": 0.2}, "2 % may go"),
    ]


def policy(setting: Setting) -> dict[str, Any]:
    """Return the policy of a setting; every quasi-identifier has ARX's hierarchy where a method generalizes."""
    columns: dict[str, Any] = {name: {"role": "quasi-identifier", "type": "nominal"} for name in QUASI}
    columns["age"]["type"] = "continuous"
    columns["education"] |= {"type": "ordinal", "order": list(EDUCATION)}
    columns["salary-class"] = {"role": "confidential", "type": "nominal", **setting.salary}
    if setting.method in ("lattice", "datafly", "mingen-cell"):
        for name in QUASI:
            columns[name]["hierarchy"] = {"file": str(DATA / f"adult_hierarchy_{name}.csv")}
    return {"privacy": setting.privacy, "method": {"name": setting.method, **setting.how}, "columns": columns}


def row(setting: Setting) -> str:
    """Run a setting and return its row."""
    began = time.process_time()
    release = kinfold.anonymize(DATA / "adult.csv", policy(setting))
    seconds = time.process_time() - began
    found = release.measures.to_dict()
    risk, lost = found["risk"], found["loss"]["overall"]
    cells = (
        *(setting.promise, setting.name, f"{found['classes']:,}", f"{found['suppressed']:,}", f"{lost:.1%}"),
        *(f"{risk['prosecutor_max']:.1%}", f"{risk['prosecutor_mean']:.1%}", f"{risk['linkage']:.2%}"),
        *(f"{risk['inference']['salary-class']:.1%}", f"{seconds:.0f}"),
    )
    return f"| {' | '.join(cells)} |"


def table(rows: list[str]) -> str:
    """Return the rows under their heads."""
    heads = ("promise", "method", "classes", "records left out", "information lost")
    risks = ("highest risk", "mean risk", "linked", "salary inferred", "seconds")
    return "\n".join([f"| {' | '.join(heads + risks)} |", "| --- " * len(heads + risks) + "|", *rows])


def main() -> None:
    """Measure, and write the table into the page or print a part of it."""
    chosen = [setting for setting in settings() if all(word in setting.name for word in sys.argv[1:])]
    rows = []
    kinfold.anonymize(DATA / "adult.csv", policy(chosen[0]))  # kernels are compiled, once, and not counted
    for setting in chosen:
        rows.append(row(setting))
        print(rows[-1], flush=True)
    if len(sys.argv) == 1:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}{table(rows)}{end}{after}", "utf-8")


if __name__ == "__main__":
    main()
