"""Spark itself: its own frames in and out, blocks in its executors, and what is said where something is missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import kinfold
import sparks
from kinfold.errors import Cancelled, DataError, PolicyError, Unreachable
from kinfold.measures import release_warnings
from kinfold.methods.blocks import pool
from kinfold.progress import run_in_thread
from kinfold.tables.resources import Resources
from kinfold.tables.spark import blocks as spark_blocks
from kinfold.tables.spark import engine as spark_engine
from kinfold.tables.spark import session
from kinfold.tables.spark.blocks import run_in_executors
from kinfold.tables.spark.driver import Driver
from kinfold.tables.spark.session import JobSession, find_java_home, open_session

RECORDS = 2_000


def people(records: int = RECORDS, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, records)
    return pa.table(
        {
            "age": age,
            "pay": np.round(random.normal(2_000, 500, records) + 10 * age, 2),
            "area": random.choice(["north", "south", "east"], records, p=[0.9, 0.05, 0.05]),
            "disease": random.choice(["flu", "cold", "none"], records),
        }
    )


def policy(method: str = "mdav", **more: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {name: {"role": "quasi"} for name in ("age", "pay")}
    columns |= {"area": {"role": "quasi", "type": "nominal"}, "disease": {"role": "confidential", "type": "nominal"}}
    return {"privacy": {"k": 6}, "method": {"name": method, "block": 500}, "columns": columns, **more}


@pytest.fixture
def bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every block be a bundle of its own, as those of a large table are."""
    monkeypatch.setattr(pool, "BATCH_RECORDS", 100)


@pytest.mark.usefixtures("bundles")
@pytest.mark.parametrize(("method", "privacy"), [("mdav", {}), ("k-first", {"t": 0.35})])
def test_blocks_make_the_same_classes_on_either_engine(
    spark: Any, method: str, privacy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = policy(method)
    asked["privacy"] |= privacy
    one = kinfold.anonymize(people(), asked)
    assert one.plan.blocks > 3
    # however many are under way at a time
    monkeypatch.setattr(spark_blocks, "BATCHES_PER_CORE", 1 if method == "mdav" else 50)
    other = kinfold.anonymize(people(), {**asked, "engine": {"name": "spark"}})
    assert one.labels.tolist() == other.labels.tolist()
    assert one.measures.to_dict() == other.measures.to_dict()


@pytest.mark.usefixtures("bundles")
def test_a_stopped_run_goes_on_in_spark_where_it_was(spark: Any) -> None:
    class Checkpoints:
        held: dict[str, Any] = {}  # noqa: RUF012
        given = 0

        def get(self, name: str) -> Any:
            self.given += name in self.held
            return self.held.get(name)

        def put(self, name: str, **arrays: Any) -> None:
            self.held[name] = arrays

    blocks = [np.arange(start, start + 50) for start in range(0, 400, 50)]
    checkpoints, events = Checkpoints(), []
    first = run_on_spark(spark, blocks, halves, lambda *event: events.append(event), checkpoints)
    assert not checkpoints.given
    again = run_on_spark(spark, blocks, halves, lambda *event: events.append(event), checkpoints)
    assert checkpoints.given
    assert [part.labels.tolist() for part in first] == [part.labels.tolist() for part in again]
    assert events[-1] == (400, 400)


def run_on_spark(
    spark: Any, blocks: Any, make: Any, progress: Any = lambda *_: None, checkpoints: Any = pool.NO_CHECKPOINTS
) -> Any:
    return pool.run_blocks(
        blocks, make, progress, checkpoints, lambda *given: run_in_executors(Driver(JobSession(spark)), *given)
    )


def failing(how: str) -> Any:
    """Return work that fails; what is made within a function travels by value."""

    class Failing:
        def __call__(self, _: Any) -> Any:
            if how == "dies":
                os._exit(3)
            raise Unreachable("it cannot be done")

    return lambda _: Failing()


def test_a_worker_that_is_killed_is_replaced(spark: Any, tmp_path: Path) -> None:
    killed = str(tmp_path / "killed")

    class KilledOnce:
        def __call__(self, _: Any) -> Any:
            import os
            import signal

            if not os.path.exists(killed):  # noqa: PTH110  it travels
                os.close(os.open(killed, os.O_CREAT))
                os.kill(os.getpid(), signal.SIGKILL)
            return pool.BlockLabels(np.zeros(5, np.int32))

    (block,) = run_on_spark(spark, [np.arange(5)], lambda _: KilledOnce())
    assert block.labels.tolist() == [0] * 5
    assert Path(killed).exists()


def halves(rows: Any) -> Any:
    many = len(rows)
    return lambda _: pool.BlockLabels(np.arange(many, dtype=np.int32) // 2)


@pytest.mark.parametrize(("how", "told"), [("raises", "it cannot be done"), ("dies", "nothing was released")])
def test_a_task_that_fails_ends_the_run_in_our_words(
    spark: Any, how: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KINFOLD_TRACEBACK", raising=False)
    with pytest.raises(Unreachable, match=told):
        run_on_spark(spark, [np.arange(5)], failing(how))


def test_a_frame_of_spark_comes_back_as_one(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns beside the quasi-identifiers stay in Spark: what comes of them are their distinct values, one by one."""
    table = people(600).append_column("note", pa.array([f"note {i}" for i in range(600)]))
    few = pa.array(["few 0" if area == "east" else "few 1" for area in table.column("area").to_pylist()])
    table = table.append_column("few", few)
    frame = spark.createDataFrame(table).repartition(3)
    as_it_stands = frame.toArrow()
    asked = policy()
    asked["columns"] |= {name: {"role": "other"} for name in ("note", "few")}
    monkeypatch.setattr(spark_engine, "MAX_ROWS_TALLIED_WHOLE", 0)
    with monkeypatch.context() as patch:
        patch.setattr(
            release_warnings, "MAX_RELATED_COLUMNS", 0
        )  # rules between columns read a bounded sample of all columns
        brought = sparks.watch_driver(patch)
        one = kinfold.anonymize(frame, asked)
    held = {each.columns for each in brought if each.holds("note 7") or each.holds("few 1")}
    assert held == {("k0", "count"), ("k0", "k1", "count")}  # counts of values, and of pairs with at most 100 of them
    assert not any("k1" in each.columns for each in brought if each.holds("note 7"))
    assert type(one.frame) is type(frame)
    assert one.frame.columns == frame.columns
    assert [field.dataType for field in one.frame.schema] == [field.dataType for field in frame.schema]
    other = kinfold.anonymize(as_it_stands, asked)
    assert one.frame.toArrow().to_pydict() == other.frame.to_pydict()
    assert one.measures["plausibility"] == other.measures["plausibility"]
    assert one.measures["plausibility"]["combinations"]  # of a category that is averaged and one that is kept
    assert one.measures.warnings == other.measures.warnings
    assert kinfold.verify(one.frame, asked).k >= 6


def test_a_frame_whose_rows_were_dropped_and_labelled(spark: Any, tmp_path: Path) -> None:
    asked = policy("lattice")
    asked["method"] = {"name": "lattice", "suppression": 0.2}
    asked["columns"] = {**asked["columns"], "pay": {"role": "other"}}
    asked["columns"]["age"] = {"role": "quasi", "hierarchy": {"intervals": [10, 40]}}
    table = people(500)
    one, other = kinfold.anonymize(spark.createDataFrame(table), asked), kinfold.anonymize(table, asked)
    assert one.frame.toArrow().to_pydict() == other.frame.to_pydict()
    assert one.verdict.to_dict() == other.verdict.to_dict()
    one.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out").holds


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda spark: spark.createDataFrame([([1],)], "a array<int>"), "not single values"),
        (lambda spark: spark.createDataFrame([(1, 2)], "a int, A int"), "same name"),
        (lambda spark: spark.createDataFrame([], "a int"), "no rows"),
    ],
)
def test_frames_that_hold_no_table_are_refused(spark: Any, made: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        kinfold.anonymize(made(spark), {"privacy": {"k": 2}, "columns": {"a": {"role": "quasi"}}})


def test_a_session_on_another_cluster_is_not_taken(spark: Any) -> None:
    with pytest.raises(PolicyError, match=r"engine\.master"):
        kinfold.anonymize(people(50), policy(engine={"name": "spark", "master": "spark://127.0.0.1:7077"}))


def test_an_address_of_spark_connect_is_no_master() -> None:
    with pytest.raises(PolicyError, match="Spark Connect, which has no master"):
        open_session("sc://127.0.0.1:15002", Resources())


def test_where_pyspark_is_missing_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(PolicyError, match=r"pip install .\.\[spark\]"):
        kinfold.anonymize(people(50), policy(engine={"name": "spark"}))


def runtime(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    (folder / "bin" / "java").chmod(0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


def test_java_is_found_or_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for absent in (tmp_path / "nowhere", runtime(tmp_path / "old" / "java-8", "1.8.0_392").parent):
        with pytest.raises(PolicyError, match="openjdk-17-jre-headless"):
            find_java_home(absent)
    assert session.read_java_version(tmp_path / "old" / "java-8") == 8
    found = runtime(tmp_path / "old" / "java-21", "21.0.2")
    assert find_java_home(found.parent) == found
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old" / "java-8"))
    with pytest.raises(PolicyError, match="Java 8"):
        find_java_home(found.parent)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PolicyError, match="JAVA_HOME"):
        find_java_home(found.parent)


def test_a_callback_can_stop_a_job(spark: Any) -> None:
    """A job that would take minutes ends within seconds, wherever it is."""
    started = time.monotonic()
    heard: list[float] = []

    def lasting(batches: Any) -> Any:
        time.sleep(600)
        yield from batches

    def listen(*_: Any) -> None:
        heard.append(time.monotonic())
        if len(heard) > 3:
            raise Cancelled("enough")

    def work(tell: Any) -> None:
        session = JobSession(spark)
        tell("read", 0, 1)
        with session.job():
            spark.range(2).mapInArrow(lasting, "id bigint").collect()

    with pytest.raises(Cancelled):
        run_in_thread(work, listen)
    assert time.monotonic() - heard[-1] < 10  # two seconds, on a machine that has nothing else to do
    assert time.monotonic() - started < 120
    end = time.monotonic() + 60
    while spark.sparkContext.statusTracker().getActiveJobsIds() and time.monotonic() < end:
        time.sleep(0.1)
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_the_bar_follows_the_stages_of_a_job(spark: Any) -> None:
    shares: set[float] = set()

    def lasting(batches: Any) -> Any:
        time.sleep(0.4)
        yield from batches

    def work(tell: Any) -> None:
        session = JobSession(spark)
        tell("read", 0, 1)
        with session.job():
            spark.range(8, numPartitions=8).mapInArrow(lasting, "id bigint").collect()

    run_in_thread(work, lambda _, done, total: shares.add(done / total))
    assert len([share for share in shares if 0 < share < 1]) > 1


CONNECT = """
import sys
import numpy as np, pyarrow as pa
from pyspark.sql import SparkSession
import kinfold

random = np.random.default_rng(1)
table = pa.table({
    "age": random.integers(18, 90, 300), "ill": random.choice(["flu", "cold"], 300),
})
columns = {"age": {"role": "quasi"}, "ill": {"role": "confidential", "type": "nominal"}}
asked = {"privacy": {"k": 6}, "method": {"name": "mdav"}, "columns": columns}
frame = SparkSession.builder.remote(sys.argv[1]).getOrCreate().createDataFrame(table)
there, here = kinfold.anonymize(frame, asked), kinfold.anonymize(table, asked)
assert there.labels.tolist() == here.labels.tolist()
assert type(there.frame).__module__.startswith("pyspark.sql.connect")
there.save(sys.argv[2])
assert kinfold.verify(sys.argv[2]).holds
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_session_of_spark_connect(tmp_path: Path) -> None:
    """A server and its client, which has no Java; the extra of kinfold does not bring gRPC."""
    pytest.importorskip("grpc", reason="Spark Connect needs gRPC: pip install 'pyspark[connect]'")
    cluster = sparks.Cluster(tmp_path)
    try:
        address = cluster.start_connect()
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "JAVA_HOME": ""}
        run = [sys.executable, "-c", CONNECT, address, str(tmp_path / "out")]
        subprocess.run(run, check=True, env=environment, timeout=600)
    finally:
        cluster.stop()


def written(folder: Path, table: pa.Table, many: int = 4) -> Path:
    folder.mkdir()
    step = -(-table.num_rows // many)
    for number in range(many):
        parquet.write_table(table.slice(number * step, step), folder / f"part-{number}.parquet")
    return folder


def command(*arguments: object, settings: Path | None = None, temporary: Path | None = None) -> subprocess.Popen[str]:
    """Start the command in a process of its own; a folder of settings is whoever runs the cluster's."""
    environment = {**os.environ, "PYTHONPATH": sparks.WORKER_PATH, "KINFOLD_TRACEBACK": ""}
    environment["JDK_JAVA_OPTIONS"] = sparks.LIGHT
    if temporary is not None:  # which Python and Java are told each in its own way
        environment |= {"TMPDIR": str(temporary), "JDK_JAVA_OPTIONS": f"{sparks.LIGHT} -Djava.io.tmpdir={temporary}"}
    if settings is not None:
        environment["SPARK_CONF_DIR"] = str(settings)
    called = [sys.executable, "-c", "from kinfold.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(called, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def started_by(processes: set[int], called: bytes) -> list[int]:
    """The processes under some, directly or not, that are called so."""
    parents, said = {}, {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(place.parent.name)] = int(place.read_text().rpartition(")")[2].split()[1])
            said[int(place.parent.name)] = (place.parent / "cmdline").read_bytes()
        except (OSError, ValueError):  # it ended meanwhile
            continue
    under = set(processes)
    while more := {each for each, parent in parents.items() if parent in under} - under:
        under |= more
    return [each for each in under - processes if called in said.get(each, b"")]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=[pytest.mark.long, pytest.mark.trust("faults")])])
def test_a_cluster_of_two_executors_of_which_one_is_killed(
    apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two executors, of which one dies midway, which costs time only. In the long form master and worker are apart."""
    sparks.require()
    data = written(tmp_path / "data", people(1_200), 2)
    light = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "2"}
    # ask an executor that is gone once more instead of three times every five seconds, and wait for no other
    light |= {"spark.shuffle.io.maxRetries": "1", "spark.shuffle.io.retryWait": "100ms", "spark.locality.wait": "0s"}
    (tmp_path / "policy.toml").write_text(POLICY)
    asked = (data, "--policy", tmp_path / "policy.toml", "--parts", "--json")
    kinfold.anonymize(data, {**policy(), "source": {"parts": True}}).save(tmp_path / "here")
    with sparks.cluster(2) if apart else sparks.small_cluster(tmp_path / "home", monkeypatch) as cluster:
        there = command(
            *("anonymize", *asked, "--out", tmp_path / "there", "--engine", "spark", "--master", cluster.address),
            settings=sparks.set_up(tmp_path / "settings", light),
        )
        worker = cluster.processes.get("worker", there).pid
        killed, end = [], time.monotonic() + 300
        while there.poll() is None and time.monotonic() < end:
            running = started_by({worker}, b"CoarseGrainedExecutorBackend")
            if not killed and len(running) == 2:
                time.sleep(1)
                os.kill(running[0], signal.SIGKILL)
                killed = running
            time.sleep(0.2)
        out, err = there.communicate(timeout=300)
    assert there.returncode == 0, err
    assert len(killed) == 2
    assert err == ""  # no word of Spark's on the terminal
    assert json.loads(out)["k"] >= 6
    files = [(tmp_path / place / "public" / "release.csv").read_bytes() for place in ("here", "there")]
    assert files[0] == files[1]


SCRIPT = """
import sys, time, tomllib
import kinfold

def tell(stage, done, total, seen=set()):
    if stage not in seen:
        seen.add(stage)
        print(stage, flush=True)

source, policy, out, master = sys.argv[1:]
asked = tomllib.loads(open(policy).read()) | {"engine": {"name": "spark", "master": master}}
release = kinfold.anonymize(source, asked, progress=tell)
release.save(out, progress=tell)
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.trust("faults")
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("method", ["mdav", "lattice"])
def test_a_cluster_of_three_workers_of_which_one_is_killed_in_each_stage(method: str, tmp_path: Path) -> None:
    """Master and workers are processes of their own; a worker dies with its executor, and another one takes its place.

    It takes minutes: Spark notices a lost worker only after a while, and each stage computes again what was lost.
    """
    data = written(tmp_path / "data", people(1_200), 3)
    text = POLICY.replace('"mdav"\nblock = 500', f'"{method}"' + ("\nblock = 500" if method == "mdav" else ""))
    if method == "lattice":
        text = text.replace('{ role = "quasi" }', '{ role = "quasi", hierarchy = { intervals = [100, 1000, 100000] } }')
    text += "[source]\nparts = true\n[output]\nparts = 3\n"
    (tmp_path / "policy.toml").write_text(text)
    kinfold.anonymize(data, tomllib.loads(text)).save(tmp_path / "here")
    light = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "3"}
    light |= {"spark.shuffle.io.maxRetries": "1", "spark.shuffle.io.retryWait": "100ms", "spark.locality.wait": "0s"}
    light |= {"spark.task.maxFailures": "20", "spark.stage.maxConsecutiveAttempts": "20", "spark.speculation": "true"}
    environment = {**os.environ, "PYTHONPATH": sparks.WORKER_PATH, "JDK_JAVA_OPTIONS": sparks.LIGHT}
    environment["SPARK_CONF_DIR"] = str(sparks.set_up(tmp_path / "settings", light))
    stages = []
    with sparks.cluster(1, 3) as cluster:
        arguments = [str(each) for each in (data, tmp_path / "policy.toml", tmp_path / "there", cluster.address)]
        run = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        assert run.stdout is not None
        for stage in run.stdout:
            time.sleep(1)  # midway
            name = f"worker{len(stages) % 3 or ''}"
            worker = cluster.processes[name]
            for process in (*started_by({worker.pid}, b"CoarseGrainedExecutorBackend"), worker.pid):
                os.kill(process, signal.SIGKILL)
            worker.wait(30)
            cluster.start_worker(name)
            stages.append(stage.strip())
        err = run.communicate(timeout=60)[1]
    assert run.returncode == 0, err
    assert {"read", "apply", "verify", "measure", "write", "check"} < {*stages}
    files = [sorted((tmp_path / place / "public" / "release").iterdir()) for place in ("here", "there")]
    assert [file.name for file in files[0]] == [file.name for file in files[1]]
    assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]


POLICY = """
[privacy]
k = 6
[method]
name = "mdav"
block = 500
[columns]
age = { role = "quasi" }
pay = { role = "quasi" }
area = { role = "quasi", type = "nominal" }
disease = { role = "confidential", type = "nominal" }
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("killed", "code", "told"),
    [
        (b"org.apache.spark", 4, "Spark ended"),
        pytest.param(b"", 130, "", marks=[pytest.mark.long, pytest.mark.trust("faults")]),
    ],
)
def test_a_command_that_is_ended_leaves_nothing(killed: bytes, code: int, told: str, tmp_path: Path) -> None:
    """By Ctrl-C, or because Java is killed: which cannot remove its own temporary folders any more."""
    sparks.require()
    data = written(tmp_path / "data", people(20_000), 2)
    (tmp_path / "policy.toml").write_text(POLICY.replace("block = 500", "block = 2000"))
    out, temporary = tmp_path / "out", tmp_path / "tmp"
    temporary.mkdir()
    run = command(
        *("anonymize", data, "--policy", tmp_path / "policy.toml", "--parts", "--out", out),
        *("--engine", "spark", "--master", "local[2]"),
        settings=sparks.set_up(tmp_path / "settings"),
        temporary=temporary,
    )
    end = time.monotonic() + 240
    while not started_by({run.pid}, b"spark_daemon") and run.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    asked = time.monotonic()
    if killed:
        os.kill(started_by({run.pid}, killed)[0], signal.SIGKILL)
    else:
        run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=120)
    assert run.returncode == code, err
    assert told in err
    assert "Traceback" not in err  # nor any other word of Spark's
    assert time.monotonic() - asked < 20  # two seconds on a machine that has nothing else to do
    assert not out.exists()
    assert not [*temporary.iterdir()]


def test_a_file_that_changes_before_its_rows_are_written_is_refused(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "t.parquet"
    parquet.write_table(people(200), source)
    release = kinfold.anonymize(source, policy(engine={"name": "spark"}))
    parquet.write_table(people(200, seed=2), source)
    with pytest.raises((DataError, Unreachable)) as refused:
        release.save(tmp_path / "out")
    assert "nothing was released" in str(refused.value) or "changed while it was read" in str(refused.value)
    assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match="changed while it was read"):
        _ = release.frame


def test_a_released_frame_of_spark_does_not_follow_the_files_of_its_source(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "t.parquet"
    parquet.write_table(people(200), source)
    release = kinfold.anonymize(spark.read.parquet(str(source)), policy())
    before = release.frame.toArrow()
    source.unlink()
    parquet.write_table(people(200, seed=2), source)
    assert release.frame.toArrow() == before


def test_a_session_that_runs_is_used_from_any_thread(spark: Any) -> None:
    assert open_session("local[2]", Resources()) is spark  # whose tasks are tried again
    with ThreadPoolExecutor(1) as another:
        assert another.submit(open_session, None, Resources()).result() is spark
    assert open_session(None, Resources()) is spark
    assert spark.range(3).count() == 3  # and goes on
