"""Count the code base: modules, lines, importers, engine verbs, the call depth to MDAV, constants, banned words.

    python -m tools.size [--json] [--src src/kinfold]

The figures that `tests/test_budget.py` limits come from here.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "kinfold"
WORDS = ROOT / "tests" / "banned_words.toml"
# Runs the command with a kernel that writes down the depth of the stack; the command does its work in a forked child.
PROBE = """
import sys
import threading
from types import SimpleNamespace
from kinfold import kernels
from kinfold.cli import main

kernels.prepare("mdav")  # a loaded kernel is used for small tables too
folder, load = sys.argv[1], kernels.load

def load_counted(name):
    module = load(name)
    return SimpleNamespace(**vars(module) | {"advance": counted(module.advance)}) if name == "mdav" else module

def counted(kernel):
    def run(*args):
        depth = 1
        first = threading.main_thread()
        waiting = [] if threading.current_thread() is first else [sys._current_frames()[first.ident]]
        for frame in [sys._getframe(1), *waiting]:
            while frame is not None:
                depth += frame.f_globals.get("__name__", "").startswith("kinfold")
                frame = frame.f_back
        with open(f"{folder}/depths", "a") as file:
            print(depth, file=file)
        return kernel(*args)
    return run

kernels.load = load_counted
request = f"anonymize {folder}/table.csv --quasi a,b -k 5 --method mdav --out {folder}/out"
sys.argv = ["kinfold", *request.split()]
main()
"""
# Strings with their prefix and comments, or names with the dot before them: `tokenize` takes ten times as long.
TOKEN = re.compile(
    r"""(?P<text>
        [rbfu]{0,2}(?:\"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3} | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
        | \#[^\n]*)
    | (?P<dot>\.[ ]*)?(?P<name>[^\W\d]\w*)""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
SMALL_MODULE_LINES = 40  # a module below this with one importer belongs into that importer


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The module, parsed when a figure first needs it."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """Lines of the file."""
        return self.text.count("\n")

    @property
    def package(self) -> str:
        """The folder below the package, or `top` for modules at the top."""
        parts = self.path.relative_to(SRC).parts[:-1]
        return "/".join(parts) or "top"


@cache
def read_modules(src: Path = SRC) -> dict[str, Module]:
    """Read every module, keyed by its dotted name."""
    modules = {}
    for path in sorted(src.rglob("*.py")):
        parts = path.relative_to(src.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(name, path, path.read_text("utf-8"))
    return modules


def count_packages(modules: dict[str, Module]) -> dict[str, tuple[int, int]]:
    """Return modules and lines of each package."""
    counts: dict[str, tuple[int, int]] = {}
    for module in modules.values():
        files, lines = counts.get(module.package, (0, 0))
        counts[module.package] = files + 1, lines + module.lines
    return counts


def count_kinds_of_lines(modules: dict[str, Module]) -> Counter[str]:
    """Return how many lines are code, docstrings, comments or blank."""
    kinds: Counter[str] = Counter()
    for module in modules.values():
        docs = sum(_docstring_lines(module.tree))
        blank = sum(not line.strip() for line in module.text.splitlines())
        comments = sum(line.lstrip().startswith("#") for line in module.text.splitlines())
        kinds += Counter(docstrings=docs, blank=blank, comments=comments)
        kinds["code"] += module.lines - docs - blank - comments
    return kinds


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of each docstring that are not blank."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield sum(bool(line.strip()) for line in ast.unparse(first).splitlines()[0].split("\\n"))


def find_importers(modules: dict[str, Module]) -> dict[str, set[str]]:
    """Return which modules import each module."""
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in modules else node.module for name in whole]
            else:
                continue
            for name in names:
                if name in modules and name != module.name:
                    importers[name].add(module.name)
    return importers


def find_small_single_importers(modules: dict[str, Module]) -> list[str]:
    """Return small modules with one importer; methods, models, kernels and package files are one idea each and stay."""
    importers = find_importers(modules)
    apart = (
        "kinfold.partition",
        "kinfold.kernels.",
        "kinfold.models.",
        "kinfold.methods.partition.",
        "kinfold.methods.generalize.",
    )
    return [
        name
        for name, module in modules.items()
        if module.lines < SMALL_MODULE_LINES
        and len(importers[name]) == 1
        and not name.startswith(apart)
        and module.path.name != "__init__.py"
    ]


def count_verbs(modules: dict[str, Module]) -> int:
    """Return how many methods the protocol of engines has."""
    for node in modules["kinfold.tables.engine"].tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Engine":
            return sum(isinstance(item, ast.FunctionDef) for item in node.body)
    raise LookupError("kinfold.tables.engine has no class Engine")


def count_constants(modules: dict[str, Module]) -> int:
    """Return how many names at the top of a module are numbers."""
    count = 0
    for module in modules.values():
        for node in module.tree.body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            count += isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return count


def count_policy_keys() -> int:
    """Return how many keys a policy can have."""
    keys = tomllib.loads((SRC / "policy" / "policy_keys.toml").read_text("utf-8"))
    return sum(len(section) if isinstance(section, dict) else 1 for section in keys.values())


def measure_depth() -> int:
    """Return how many functions of kinfold are on the stack from `main` to the MDAV kernel, for a small table."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "table.csv").write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(4000)))
        subprocess.run([sys.executable, "-c", PROBE, folder], check=True, capture_output=True)  # noqa: S603
        return min(map(int, Path(folder, "depths").read_text().split()))


def find_banned_words(modules: dict[str, Module]) -> list[str]:
    """Return the places of names, docstrings, comments and messages that use a banned word."""
    rules = tomllib.loads(WORDS.read_text("utf-8"))
    banned = re.compile(rf"\b({'|'.join(rules['words'])})\b", re.IGNORECASE)
    names = set(rules["names"])
    allowed = {(entry["file"], entry["word"]) for entry in rules["exceptions"]}
    places = []
    for module in modules.values():
        place = str(module.path.relative_to(SRC))
        for token in TOKEN.finditer(module.text):
            if token["text"]:
                matches = banned.findall(token["text"])
            elif (
                token["name"] in names and not token["dot"]
            ):  # an attribute counts where it is defined, not where it is used
                matches = [token["name"]]
            else:
                continue
            line = module.text.count("\n", 0, token.start()) + 1 if matches else 0
            places += [f"{place}:{line} {word}" for word in matches if (place, word.lower()) not in allowed]
    return places


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="tools.size", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    modules = read_modules()
    importers = find_importers(modules)
    tests = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")]
    figures = {
        "modules": len(modules),
        "lines": sum(module.lines for module in modules.values()),
        **count_kinds_of_lines(modules),
        "single importers": sum(len(found) == 1 for found in importers.values()),
        "small single importers": len(find_small_single_importers(modules)),
        "engine verbs": count_verbs(modules),
        "functions from main to MDAV": measure_depth(),
        "numeric constants": count_constants(modules),
        "policy keys": count_policy_keys(),
        "banned words": len(find_banned_words(modules)),
        "test files": len(tests),
        "test lines": sum(text.count("\n") for text in tests),
    }
    if options.json:
        print(json.dumps({**figures, "packages": count_packages(modules)}, indent=1))
        return
    for name, value in figures.items():
        print(f"{name:28} {value:>8,}")
    for package, (files, lines) in sorted(count_packages(modules).items()):
        print(f"  {package:22} {files:>4} modules {lines:>7,} lines")


if __name__ == "__main__":
    main()
