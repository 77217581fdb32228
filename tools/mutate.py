"""Mutation testing: small mistakes planted one at a time in what judges a release; tests must notice each of them.

    python -m tools.mutate [PART ...]       parts are those of PARTS; all of them if none is named

For each mutant a process is forked from one that has everything heavy loaded; there the module is loaded from the
changed source, and the tests that concern it run until one fails. Writes build/mutation/survivors.txt; ends with code 1
where fewer than 95 percent are noticed. Survivors that cannot be noticed are explained in docs/mutants.md.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
WORKERS = int(os.environ.get("WORKERS", "2"))
PATIENCE = 240  # seconds; a mutant that never ends is noticed, too
MARK = 0.95
TESTS = {
    "models": (
        "tests/unit/test_models.py",
        "tests/property/test_models.py",
    ),
    "verification": (
        "tests/unit/test_verification_limits.py",
        "tests/interfaces/test_verify.py",
        "tests/unit/test_certificates.py",
        "tests/property/test_planted_errors.py",
    ),
    "checker": ("tests/unit/test_checker_limits.py", "tests/unit/test_checker.py"),
}
HOUSE = SRC / "kinfold"
VALUES = [HOUSE / "models" / "terms.py", HOUSE / "models" / "verdict.py"]  # of no model: verification says them
PARTS = {
    "models": sorted({*(HOUSE / "models").glob("[a-z]*.py")} - {*VALUES}),
    "verification": [HOUSE / "verification.py", *VALUES],
    "checker": [HOUSE / "checker.py"],
}
OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.Pow: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """One mistake: the file, the line, what became what, and the source with it."""

    path: Path
    line: int
    change: str
    source: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(SRC)}:{self.line}: {self.change}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mistake that can be planted in a file."""
    text = path.read_text("utf-8")
    for number in range(sum(1 for _ in _sites(ast.parse(text)))):
        tree = ast.parse(text)
        node, field, new = list(_sites(tree))[number]
        before = ast.unparse(node)
        if field == "whole":
            _replace(tree, node, new)
        elif isinstance(field, tuple):
            getattr(node, field[0])[field[1]] = new
        else:
            setattr(node, field, new)
        after = ast.unparse(new if field == "whole" else node)
        yield Mutant(path, node.lineno, f"{_short(before)}  ->  {_short(after)}", ast.unparse(tree))


def _sites(tree: ast.AST) -> Iterator[tuple[Any, Any, Any]]:
    """Where something can be changed: the node, the field (or "whole"), and what is put there."""
    for node in _code(tree):
        if isinstance(node, ast.Compare):
            yield from ((node, ("ops", i), OTHER[type(op)]()) for i, op in enumerate(node.ops))
        elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OTHER:
            yield node, "op", OTHER[type(node.op)]()
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
            yield node, "whole", node.operand
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            yield node, "value", not node.value if isinstance(node.value, bool) else node.value + 1
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node, "test", ast.UnaryOp(ast.Not(), node.test)
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            yield node, "whole", ast.copy_location(ast.Pass(), node)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs: no annotation, decorator or docstring."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _code(child)


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if value is old:
                setattr(node, name, new)
            elif isinstance(value, list):
                value[:] = [new if child is old else child for child in value]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) < 100 else f"{line[:97]}..."


def survives(mutant: Mutant, tests: tuple[str, ...]) -> int:
    """Fork a process that runs the tests with the mistake in place; return its id."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    with open(os.environ.get("MUTATE_LOG", os.devnull), "a") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    code = 1
    try:
        _plant(mutant)
        import pytest

        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
    finally:
        os._exit(code)


def _plant(mutant: Mutant) -> None:
    """Let the import of the module find the changed source."""
    name = ".".join(mutant.path.relative_to(SRC).with_suffix("").parts)
    compiled = compile(mutant.source, str(mutant.path), "exec")

    class Planted(MetaPathFinder, Loader):
        def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
            return (
                importlib.util.spec_from_loader(fullname, self, origin=str(mutant.path)) if fullname == name else None
            )

        def create_module(self, spec: Any) -> None:  # noqa: ARG002
            return None

        def get_code(self, fullname: str) -> Any:  # noqa: ARG002  for a module that is run as a program
            return compiled

        def exec_module(self, module: Any) -> None:
            module.__file__ = str(mutant.path)
            exec(compiled, module.__dict__)  # noqa: S102

    sys.meta_path.insert(0, Planted())


def hunted(found: list[Mutant], tests: tuple[str, ...]) -> list[Mutant]:
    """Run the tests against every mutant, some at a time; return those that nobody noticed."""
    running: dict[int, tuple[Mutant, float]] = {}
    waiting, left = list(found), []
    while waiting or running:
        while waiting and len(running) < WORKERS:
            mutant = waiting.pop(0)
            running[survives(mutant, tests)] = (mutant, time.monotonic())
        for child, (mutant, started) in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if not done and time.monotonic() - started > PATIENCE:
                os.killpg(child, signal.SIGKILL)
            if done:
                del running[child]
                left += [mutant] if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 else []
        time.sleep(0.02)
    return left


def main() -> int:
    """Hunt in the parts that are named, tell the score, write the survivors."""
    import duckdb
    import numpy
    import pandas
    import pyarrow
    import pydantic
    import scipy.stats  # everything heavy, once; what pytest itself rewrites must come later

    assert all((duckdb, numpy, pandas, pyarrow, pydantic, scipy))  # noqa: S101
    os.chdir(ROOT)
    os.environ |= {"CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    survivors: list[Mutant] = []
    total = 0
    for part in sys.argv[1:] or PARTS:
        found = [mutant for path in PARTS[part] for mutant in mutants(path)]
        sound = [Mutant(path, 0, "nothing", ast.unparse(ast.parse(path.read_text("utf-8")))) for path in PARTS[part]]
        if len(hunted(sound, TESTS[part])) < len(sound):
            print(f"{part}: its tests fail without any mistake; nothing can be learnt from them")
            return 1
        left = hunted(found, TESTS[part])
        print(f"{part}: {len(found) - len(left)} of {len(found)} noticed", flush=True)
        survivors, total = survivors + left, total + len(found)
    report = ROOT / "build" / "mutation" / "survivors.txt"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text("".join(f"{mutant}\n" for mutant in survivors), "utf-8")
    print(*survivors, sep="\n")
    share = 1 - len(survivors) / max(total, 1)
    print(f"{share:.1%} of {total} noticed, {MARK:.0%} asked; survivors in {report.relative_to(ROOT)}")
    return 0 if share >= MARK else 1


if __name__ == "__main__":
    sys.exit(main())
