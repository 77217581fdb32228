"""Generated tables: no deadline on a busy machine; the same ones in every run, new ones in the long form alone.

With the compiler off (`make coverage`) the kernels are plain Python, a hundred times slower: a few tables of each kind.
The long form (`make trust`) draws more of them, and writes down in a ledger what was tried.
"""

import atexit
import gc
import os
import signal
from collections.abc import Generator, Iterator

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

import chromium
import postgres
import sparks
from ledger import SCALE, tally_test
from uncompiled import PLAIN

EVERYDAY = "not slow"  # what `make quick` asks for
TRUSTED = {"property": "properties", "fuzz": "fuzz tests"}  # folders that are part of the long form as a whole
FEW = 40  # cases that a test asks for
MORE = min(SCALE, 1.5)  # times the tables of a property: those that scale by themselves are where the time goes

settings.register_profile("explore", deadline=None)
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("plain", deadline=None, derandomize=True, max_examples=8)
settings.load_profile("plain" if PLAIN else "explore" if SCALE > 1 else "repeat")


def pytest_configure(config: pytest.Config) -> None:
    """Take signals whoever started the tests, for a background job of a shell ignores them; let workers end quietly.

    Threads of Spark's gateway are still there when a worker ends, and what their frames hold is never freed: DuckDB's
    binding would print pages about it below the summary. So a worker leaves as soon as its own exit handlers have run.
    """
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)  # registered first, so it runs last
    os.fsync = lambda _: None  # only a power cut could tell; thousands of releases would wait for the disk
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_IGN:
            signal.signal(getattr(signal, name), signal.SIG_DFL)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what belongs to the long form, and settle how many tables each property draws.

    What runs on Spark comes first, in one worker: what is last would go to others, each with a session of its own.
    """
    items.sort(key=lambda item: not _on_spark(item))
    everyday = config.getoption("markexpr") == EVERYDAY
    functions = {}
    for item in items:
        generated = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        kind = TRUSTED.get(item.path.parent.name, "properties" if generated else None)
        if kind and not item.get_closest_marker("trust"):
            item.add_marker(pytest.mark.trust(kind))
        if item.get_closest_marker("long") and SCALE <= 1:
            item.add_marker(pytest.mark.skip(reason="the long form, which `make trust` runs"))
        if _on_spark(item) or "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        if PLAIN:
            _as_plain_python(item)
        functions[getattr(item, "obj", None)] = kind
    for function, kind in functions.items():
        asked = getattr(function, "_hypothesis_internal_use_settings", None)
        if asked is not None:  # there is no public way to change the settings of a test that has some
            count = _examples(asked.max_examples, kind, everyday=everyday)
            function._hypothesis_internal_use_settings = settings(asked, max_examples=count)


def _on_spark(item: pytest.Item) -> bool:
    """Whether a test starts Spark, which takes seconds, and more for each job."""
    asked = str(getattr(getattr(item, "callspec", None), "params", {}).get("engine", ""))
    return "spark" in getattr(item, "fixturenames", ()) or asked.startswith("spark")


def _as_plain_python(item: pytest.Item) -> None:
    """Let numpy wrap a hash around and look at the bound of an emptied box, as compiled code does without a word."""
    item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning"))
    if item.get_closest_marker("compiled"):
        item.add_marker(pytest.mark.skip(reason="takes minutes with the compiler off"))


def _examples(asked: int, kind: str | None, *, everyday: bool) -> int:
    """Return how many cases a test draws: all that it asks for in the long form, where they are new ones every time.

    `make test` draws the same ones every time, so a quarter of them, or a sixth where a test asks for few because each
    takes long; the everyday part draws an eighth, and with the compiler off no test draws more than the profile says.
    """
    if PLAIN:
        return min(asked, 8)
    if everyday:
        return min(asked, max(asked // 8, 4))
    if SCALE <= 1:
        return min(asked, max(asked // (4 if asked > FEW else 6), 4))
    return round(asked * MORE) if kind == "properties" else asked


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector of a worker leave out what stays until the end: modules, and thousands of tests."""
    if hasattr(session.config, "workerinput"):
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in the docstrings of the package alone: looking for them in every test takes a second."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    tally_test(item, report)
    return report


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL of the tests' own."""
    with postgres.running() as found:
        yield found


@pytest.fixture(scope="session")
def spark() -> object:
    """A session of Spark, the only one of this process: it takes seconds to start."""
    return sparks.session()


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """A real browser, the only one of this process."""
    with chromium.opened() as opened:
        yield opened
