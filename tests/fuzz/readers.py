"""The readers that strangers' bytes reach, each as a function of bytes: a result, or an error that says no value.

Hypothesis (`test_readers.py`) and atheris (`tools/fuzz.py`) call the same functions.
"""

import hashlib
import io
import json
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import arx_projects
from kinfold import pipeline as flow
from kinfold.convert import convert_file, convert_project, read_deid
from kinfold.errors import KinfoldError
from kinfold.hierarchies import read_arx
from kinfold.policy.model import Policy
from kinfold.release.inspection import check_folder
from other_tools import MU_ANT, REPORT, SCRIPT

MARKER = "Xanthippe"  # planted in the data: no message may tell it

TABLE = f"""\
name,age,zip,level,disease
{MARKER}1,31,{MARKER}A,low,{MARKER}X
{MARKER}2,32,{MARKER}A,low,{MARKER}X
{MARKER}3,33,{MARKER}B,mid,{MARKER}Y
{MARKER}4,61,{MARKER}B,mid,{MARKER}X
{MARKER}5,62,{MARKER}C,high,{MARKER}Y
{MARKER}6,63,{MARKER}C,high,{MARKER}X
"""
POLICY = """\
[privacy]
k = 2
[method]
name = "mdav"
[columns.name]
role = "identifier"
[columns.age]
role = "quasi-identifier"
hierarchy = { intervals = [5, 20] }
[columns.zip]
role = "quasi-identifier"
[columns.level]
role = "quasi-identifier"
type = "ordinal"
order = ["low", "mid", "high"]
[columns.disease]
role = "confidential"
"""


def read_csv(data: bytes) -> None:
    """Profile a table, and release it by its first two columns."""
    with _file("table.csv", data) as path:
        found = _allowed(lambda: flow.profile(path))
        if found is not None:
            names = [column.name for column in found.columns][:2]
            _allowed(lambda: flow.anonymize(path, quasi=names, k=2, others="drop", method="mdav"))


def read_policy(data: bytes) -> None:
    """Read a policy and release the table above by it."""
    with _file("policy.toml", data) as path:
        policy = _allowed(lambda: Policy.load(path))
        if policy is not None and _modest(policy):
            (path.parent / "table.csv").write_text(TABLE, "utf-8")
            _allowed(lambda: flow.anonymize(path.parent / "table.csv", policy))


def read_hierarchy(data: bytes) -> None:
    """Read a hierarchy file and number its labels."""
    with _file("hierarchy.csv", data) as path:
        made = _allowed(lambda: read_arx(path))
        if made is not None:
            assert made.paths.shape == made.labels.shape


def read_project(data: bytes) -> None:
    """Convert a project of ARX."""
    with _file("study.deid", data) as path:
        _allowed(lambda: convert_project(read_deid(path)).write(path.parent / "converted"))


def read_settings(data: bytes) -> None:
    """Convert settings of µ-ANT, or a report or script of sdcMicro; what is made of them is a policy."""
    with _file("settings", data) as path:
        made = _allowed(lambda: convert_file(path))
        if made is not None:
            Policy.parse(tomllib.loads(made.policy))


def read_certificate(data: bytes) -> None:
    """Verify a release that is whole but for this certificate."""
    with _file("certificate.json", data) as path:
        (path.parent / "release.csv").write_text("age,disease\n32,flu\n32,flu\n62,cold\n62,flu\n", "utf-8")
        _allowed(lambda: check_folder(path.parent))


READERS: dict[str, Callable[[bytes], None]] = {
    "csv": lambda data: read_csv(b"name,age,zip,level,disease\n" + data),  # a header that is none is another matter
    "policy": read_policy,
    "hierarchy": read_hierarchy,
    "project": read_project,
    "settings": read_settings,
    "certificate": read_certificate,
}


SETTINGS = tuple(text.encode() for text in (MU_ANT, REPORT, SCRIPT))


def certificate(**changed: Any) -> dict[str, Any]:
    """A certificate that is true of the release above, as values."""
    file = b"age,disease\n32,flu\n32,flu\n62,cold\n62,flu\n"
    columns = [
        {"name": "age", "role": "quasi-identifier", "type": "continuous", "average": "mean"},
        {"name": "disease", "role": "confidential", "type": "nominal", "distance": "equal"},
    ]
    k = {"model": "KAnonymity", "parameters": {"k": 2}, "promise": "2-anonymity", "asked": 2, "found": 2}
    t = {"t": 0.5, "column": "disease", "distance": "equal"}
    close = {"model": "TCloseness", "parameters": t, "promise": "0.5-closeness of disease", "asked": 0.5, "found": 0.25}
    told = {"file": "release.csv", "sha256": hashlib.sha256(file).hexdigest(), "order": "sorted"}
    return {
        "format": 1,
        "made_with": {"kinfold": "0.1.0"},
        "release": {**told, "records": 4, "classes": 2},
        "method": "mdav",
        "columns": columns,
        "promises": [k, close],
        "joint": False,
        "found": {"k": 2, "l": {"disease": 1}, "t": {"disease": 0.25}},
        **changed,
    }


def sealed(content: Any) -> bytes:
    """A certificate with the checksum that its content has."""
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return json.dumps({**content, "checksum": hashlib.sha256(canonical.encode()).hexdigest()}).encode()


def study() -> dict[str, bytes]:
    """The parts of a small project of ARX."""
    with tempfile.TemporaryDirectory() as folder:
        data = arx_projects.project(Path(folder), arx_projects.study()).read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: dict[str, bytes]) -> bytes:
    """Parts as a zip archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return made.getvalue()


def _allowed(read: Callable[[], Any]) -> Any:
    """Call; an error of kinfold is a result, if it tells no value. Anything else goes through."""
    try:
        return read()
    except KinfoldError as error:
        said, code = error.text(), error.exit_code
    assert MARKER not in said, "a message tells a value of the data"
    assert code in (2, 3, 4, 5), "an error without a code of its own"
    return None


def _modest(policy: Policy) -> bool:
    """Whether a policy asks for seconds at most: a budget of hours is no hang."""
    budgets = (policy.method.refine or 0, policy.method.prove)
    steps = policy.method.refine_steps or 0
    return all(budget == "auto" or budget < 1 for budget in budgets) and steps < 10_000


@contextmanager
def _file(name: str, data: bytes) -> Iterator[Path]:
    """A file in a folder of its own, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield path
