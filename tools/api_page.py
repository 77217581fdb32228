"""The page of kinfold in Python, from the docstrings.

python -m tools.api_page            writes docs/api.md
python -m tools.api_page --check    ends with code 1 where the page is not what the docstrings say
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kinfold

SHORT = 90  # a longer signature has a line for each parameter
SEPARATOR = re.compile(r", (?=\*|\w+:)")
PAGE = Path(__file__).parents[1] / "docs" / "api.md"
FUNCTIONS = ("anonymize", "verify", "measure", "profile", "compare")
VALUES = (
    *("kinfold.Release", "kinfold.models.verdict.Verdict", "kinfold.measures.measurement.Measures"),
    *("kinfold.profiling.profile.Profile", "kinfold.profiling.profile.ColumnProfile"),
    *("kinfold.comparison.Comparison", "kinfold.comparison.RankedSetting", "kinfold.Policy"),
)
MEMBERS = {  # a docstring says what a method or property is; of a field it is said here
    "Release": {
        "frame": "",
        "labels": "",
        "verdict": "What was found on the released rows: a `Verdict`.",
        "measures": "Risk and loss: `Measures`.",
        "method_summary": "",
        "save": "",
    },
    "Verdict": {
        "holds": "",
        "k": "The records of the smallest class, whatever was promised.",
        "l": "By confidential column, the fewest values that a class holds.",
        "t": "By confidential column, the largest distance of a class to the whole table.",
        "records": "Released records.",
        "classes": "Equivalence classes: distinct tuples of released quasi-identifiers.",
        "findings": "Each promise: what was asked, what was found, how many classes miss it.",
        "people": "The promises again with each person counted once, where the policy has `unit`.",
        "statements": "Promises about the population, which only the data holder can check.",
        "problems": "What else is wrong with the table.",
        "disclosure": "With `together_with` or `after`: what several releases disclose together; see its `sentences`.",
        "notes": "Promises that cannot be checked on the table: they are statements of the data holder.",
        "quasi": "The columns that were grouped by.",
        "confidential": "The columns that promises protect.",
        "require": "",
        "to_dict": "",
    },
    "Measures": {
        "to_dict": "",
        "values": 'The same mapping; `measures["loss"]` reads from it.',
        "warnings": "What to look at before the table leaves.",
        "risk_by_record": "",
        "worst_records": "The original records that are easiest to single out, with what contributes: internal.",
        "statistics": "Of each column before and after: mean, deviation, quantiles, frequencies; `to_dict()`.",
    },
    "Profile": {
        "rows": "Records of the table.",
        "columns": "A `ColumnProfile` of each column.",
        "combinations": "Columns that together make a share of the records unique: `columns`, `unique`.",
        "warnings": "What to look at.",
        "source": "How the table is written, by the keys of `[source]`.",
        "readings": "What was guessed of that, in words.",
        "k": "The k of a starter policy.",
        "unit": "A column that tells people apart where they have several rows, if one seems to.",
        "rows_of_person": "The most rows of a person, if people have several rows and no column numbers them; else 1.",
        "sampling_weights": "A column of sampling weights, if one seems to be.",
        "rules": "Edit rules that hold in the table.",
        "questions": "What only you can answer: `name`, `question`, `seen`, `sets`, `proposed`, `answers`.",
        "to_dict": "",
    },
    "ColumnProfile": {
        "name": "Of the column.",
        "kind": "continuous, ordinal, nominal or date.",
        "storage": "How the file or frame stores it.",
        "distinct": "Values that differ.",
        "missing": "Records without a value.",
        "unique": "Share of the records that it makes unique by itself.",
        "role": "A role to start from.",
        "reason": "Why.",
        "t": "A level of t-closeness to start from, where it is confidential.",
        "l": "A level of diversity to start from, where it is confidential.",
        "undecided": "Whether the answer to a question decides about its release.",
        "depends_on": "Protected or removed columns that it tells.",
        "average": "A proposed average, if it is not the default of its type.",
        "na": "Codes for missing values.",
        "unit": "Texts before or after its numbers.",
        "of": "Whose attribute it is if a person has several rows: person or event.",
        "order": "Of an ordinal column of text.",
        "hierarchy": "How it could be generalized.",
        "to_dict": "",
    },
    "Comparison": {
        "ranked": "A `RankedSetting` of each setting, the best score first.",
        "failed": "Settings that could not be made, each with its reason.",
        "risk": "The name of the risk that was compared.",
        "loss": "The name of the loss.",
        "weight": "Of the risk in the score; the loss has the rest.",
        "advice": "",
        "map": "",
        "to_dict": "",
    },
    "RankedSetting": {
        "setting": "`method`, `k` and `t`.",
        "method": "Its name as shown; what `auto` chose stands in brackets.",
        "risk": "0 to 1, less is better.",
        "loss": "0 to 1, less is better.",
        "score": "Percent, less is better.",
        "best": "Whether no other setting has as little of both and less of one.",
        "measures": "All measures of the release, as `Measures.to_dict()` has them.",
    },
    "Policy": {"load": "", "parse": "", "of": "", "toml": ""},
}
MODELS = ("KAnonymity", "LDiversity", "TCloseness", "PSensitive", "AlphaK")
FORMULAS = (
    *("attackers", "uniques", "global_risk", "linkage"),
    *("attribute_disclosure", "numeric_loss", "probabilistic_loss", "categorical_loss", "utility"),
)
HEAD = """\
# Python

Every public name, from the docstrings; made by `make docs`. `import kinfold` costs next to nothing: what a name needs
is loaded when it is first used.

```console
$ kinfold demo --out demo                # writes demo/patients.csv: 1,000 patients who do not exist
...
```

```python
>>> import kinfold
>>> import numpy as np
>>> from kinfold.methods.partition.requirement import Requirement
>>> from kinfold.tables.tally import Tally, tally_labels
>>> asked = dict(quasi=["age", "sex"], confidential=["disease"], k=5, l=2, others="drop")
>>> release = kinfold.anonymize("demo/patients.csv", **asked)
>>> release.verdict.k, release.verdict.holds, len(release.labels)
(5, True, 1000)
```
"""


def page() -> str:
    """Return the whole page."""
    parts = [
        HEAD,
        "## Functions\n",
        *(_describe_callable(f"kinfold.{name}", getattr(kinfold, name)) for name in FUNCTIONS),
        "## Values\n",
        *(_value(path) for path in VALUES),
        "## Errors\n\nAll are a `KinfoldError`; each has an exit code, a place and what to do.\n",
        _errors(),
        "## Partitioners\n\n`x` is an array of floats, records by attributes, standardized by the caller.\n",
        *(
            _describe_callable(f"kinfold.partition.{name}", getattr(kinfold.partition, name))
            for name in kinfold.partition.__all__
        ),
        "## Risk of a table\n\n`table`: a frame of pandas, polars or pyarrow, a dict of lists, or an array.\n",
        *(_describe_callable(f"kinfold.risk.{name}", getattr(kinfold.risk, name)) for name in kinfold.risk.__all__),
        "## Perturbation\n\nArrays in, arrays out; no promise about privacy: [perturbation](perturbation.md).\n",
        *(
            _describe_callable(f"kinfold.perturb.{name}", getattr(kinfold.perturb, name))
            for name in kinfold.perturb.__all__
        ),
        "## Models\n\nPredicates on a tally; what each promises is on [its page](models.md).\n",
        *(_describe_callable(f"kinfold.models.{name}", getattr(_module("kinfold.models"), name)) for name in MODELS),
        "## Formulas\n\nPure functions of arrays in `kinfold.measures.formulas`; examples: [measures](measures.md).\n",
        "| function | what |\n| --- | --- |",
        *(f"| `{name}.{each.__name__}` | {_first(each)} |" for name in FORMULAS for each in _functions(name)),
    ]
    return "\n".join(parts) + "\n"


def _describe_callable(name: str, what: Callable[..., Any]) -> str:
    """Return one function or class: its signature, its words, its examples."""
    words, example = _split(inspect.getdoc(what) or "")
    module, _, bare = name.rpartition(".")
    code = f"```python\n>>> from {module} import {bare}\n{example}\n```\n" if example else ""
    return f"### `{name}`\n\n```py\n{_signature(bare, what)}\n```\n\n{words}\n\n{_keywords(what)}{code}"


def _signature(name: str, what: Callable[..., Any]) -> str:
    """Return the signature without the keys of a policy, which have a line of their own."""
    found = inspect.signature(what)
    kept = [
        each for each in found.parameters.values() if each.kind != each.KEYWORD_ONLY or each.annotation != each.empty
    ]
    text = name + re.sub(r" = <function \w+ at 0x[0-9a-f]+>", " = ...", str(found.replace(parameters=kept)))
    if len(text) <= SHORT:
        return text.replace("'", "")
    inside, _, result = text[len(name) + 1 :].rpartition(") -> ")
    return f"{name}(\n    {SEPARATOR.sub(chr(44) + chr(10) + '    ', inside)},\n) -> {result}".replace("'", "")


def _keywords(what: Callable[..., Any]) -> str:
    """Return the keys that a call takes beside its own parameters."""
    if inspect.isclass(what):
        return ""
    keys, common = _keys(what), _keys(kinfold.anonymize)
    own = (
        [key for key in keys if key not in common]
        if what is not kinfold.anonymize and set(common) <= set(keys)
        else keys
    )
    rest = [] if len(own) == len(keys) else ["those of `anonymize`"]
    said = " and ".join([*([", ".join(f"`{key}`" for key in own)] if own else []), *rest])
    return f"Keywords, most as in [the policy file](policy.md): {said}.\n\n" if said else ""


def _keys(what: Callable[..., Any]) -> list[str]:
    every = inspect.signature(what).parameters.values()
    return [each.name for each in every if each.kind == each.KEYWORD_ONLY and each.annotation == each.empty]


def _value(path: str) -> str:
    """Return a class and its members that are for users."""
    module, _, name = path.rpartition(".")
    what = getattr(_module(module), name)
    rows = [f"| `{member}` | {told or _first(getattr(what, member))} |" for member, told in MEMBERS[name].items()]
    return "\n".join([f"### `{name}`\n", _first(what), "", "| member | what |", "| --- | --- |", *rows, ""])


def _errors() -> str:
    """Return the errors as a table."""
    errors = _module("kinfold.errors")
    names = [name for name in kinfold.__all__ if inspect.isclass(getattr(errors, name, None))]
    rows = [f"| `{name}` | {getattr(errors, name).exit_code} | {_first(getattr(errors, name))} |" for name in names]
    return "\n".join(["| error | exit code | when |", "| --- | --- | --- |", *rows, ""])


def _functions(module: str) -> Iterator[Callable[..., Any]]:
    """Yield the public functions that a module of measures defines."""
    found = _module(f"kinfold.measures.formulas.{module}")
    for name, each in vars(found).items():
        if inspect.isfunction(each) and each.__module__ == found.__name__ and not name.startswith("_"):
            yield each


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _split(doc: str) -> tuple[str, str]:
    """Tell the words of a docstring from its example."""
    words, mark, example = doc.partition(">>> ")
    return words.strip(), (mark + example).strip()


def _first(what: Any) -> str:
    """Return the first sentence or line of a docstring, for a cell of a table."""
    doc = inspect.getdoc(what.func if hasattr(what, "func") else what) or ""
    return " ".join(doc.partition("\n\n")[0].split()).replace("|", "\\|")


def main() -> None:
    """Write the page, or compare it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), "utf-8")
    elif PAGE.read_text("utf-8") != page():
        sys.exit("docs/api.md is not what the docstrings say; make it anew with make docs")


if __name__ == "__main__":
    main()
