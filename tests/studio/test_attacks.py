"""What somebody else might try on the studio: another page, another user, another name, too much, too slow."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import io
import json
import logging
import socket
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import arx_projects
from kinfold.studio.refusals import StudioLimits
from kinfold.studio.server import LOOPBACK, HeaderTimeoutProtocol, Studio, open_browser
from studio.tables import MARKUP, SCRIPT, hostile
from studio.visitor import Visitor, has_file, studio, token_in, wait_for

pytestmark = pytest.mark.slow

QUICK = StudioLimits(upload_bytes=200_000, stall_seconds=0.6, upload_seconds=2.0, sessions=6, streams=2, waiting=2)


@pytest.fixture(scope="module")
def quick() -> Iterator[Studio]:
    with studio(QUICK) as server:
        yield server


def test_a_token_lets_one_browser_in_once(made: Studio) -> None:
    address = made.address()
    first, second = Visitor(made.port), Visitor(made.port)
    entered = first.ask("GET", f"/?token={token_in(address)}")
    assert entered.status == 303
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert token_in(address).lower() not in cookie
    assert second.ask("GET", f"/?token={token_in(address)}").status == 403
    assert second.ask("GET", "/?token=wrong").status == 403
    assert second.ask("GET", "/?token=").status == 401
    assert not second.cookie


def test_cookies_of_other_applications_lock_nobody_out(made: Studio) -> None:
    """They are sent to every port of this host, in whatever form they were set."""
    visitor = Visitor(made.port)
    foreign = ['prefs={"theme":"dark"}', "a b=c, d", 'half="open', "=nameless", "bare", "name=\xe9\xff", "x" * 200_000]
    foreign += [f"kinfold-{made.port}=stale", f'kinfold-{made.port}="']
    before = "; ".join(foreign)
    entered = visitor.ask("GET", f"/?token={token_in(made.address())}", headers={"Cookie": before})
    assert entered.status == 303
    mine = visitor.cookie
    for cookies in (f"{before}; {mine}", f"{mine};{before}", f"{mine}; {mine}x", mine.replace("=", '="') + '"'):
        assert visitor.ask("GET", "/api/session", headers={"Cookie": cookies}).status == 200
    assert visitor.ask("GET", "/api/session", headers={"Cookie": before}).status == 401


def test_a_sign_in_that_fails_uses_no_token_up(made: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    token, visitor = token_in(made.address()), Visitor(made.port)
    path = f"/?token={token}"
    assert visitor.ask("HEAD", path).status == 401
    assert visitor.ask("POST", path).status == 401
    assert visitor.ask("GET", path, headers={"Host": "evil.example"}).status == 403
    with monkeypatch.context() as patched:
        patched.setattr(made.sessions, "folder", made.sessions.folder / "gone")  # no space, say
        assert visitor.ask("GET", path).status == 500
    with monkeypatch.context() as patched:
        patched.setattr(made.sessions, "start_callbacks", [lambda _: (_ for _ in ()).throw(BrokenPipeError)])
        assert visitor.ask("GET", path).status == 303  # the terminal was closed
    assert visitor.ask("GET", "/api/session").status == 200


def test_the_browser_is_opened_by_a_private_file_that_holds_the_token(
    made: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    monkeypatch.setattr(made.sessions, "start_callbacks", [])
    address = made.address()
    open_browser(address, made.sessions)
    page = Path(opened[0].removeprefix("file://"))
    assert token_in(address) not in opened[0]
    assert oct(page.stat().st_mode & 0o777) == "0o600"
    assert address in page.read_text()
    visitor = Visitor(made.port)
    entered = visitor.ask("GET", f"/?token={token_in(address)}", headers={"Sec-Fetch-Site": "cross-site"})
    assert entered.status == 200  # strict cookies do not follow a redirect that a file began
    assert b'url=/"' in entered.body
    assert visitor.ask("GET", "/api/session").status == 200
    assert not page.exists()


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_an_unfinished_header_times_out(made: Studio, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(HeaderTimeoutProtocol, "seconds", 0.4)
    with socket.create_connection((LOOPBACK, made.port), timeout=20) as raw:
        raw.sendall(sent)
        assert _whole(raw).startswith("HTTP/1.1 408")
    with socket.create_connection((LOOPBACK, made.port), timeout=20) as raw:
        raw.sendall(f"GET / HTTP/1.1\r\nHost: {LOOPBACK}:{made.port}\r\n\r\n".encode() + sent)  # a whole one before it
        if not sent:
            return
        raw.settimeout(5)
        assert "HTTP/1.1 408" in _whole(raw)


@pytest.mark.parametrize("path", ["/", "/api/session", "/api/events", "/api/rows", "/static/main.js", "/vega.js"])
def test_nothing_is_told_without_a_cookie(made: Studio, path: str) -> None:
    answer = Visitor(made.port).ask("GET", path)
    assert answer.status == 401
    assert b"patients" not in answer.body
    stranger = Visitor(made.port)
    stranger.cookie = f"kinfold-{made.port}=guessed"
    assert stranger.ask("GET", path).status == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
def test_a_foreign_host_is_refused(demo: Visitor, host: str) -> None:
    for path in ("/", "/api/session", "/?token=x"):
        assert demo.ask("GET", path, headers={"Host": host.format(port=demo.port)}).status in (400, 403)


def test_this_machine_may_be_called_localhost(demo: Visitor) -> None:
    assert demo.ask("GET", "/api/session", headers={"Host": f"localhost:{demo.port}"}).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://127.0.0.1:{port}.evil.example",
    ],
)
def test_a_foreign_origin_is_refused(demo: Visitor, origin: str) -> None:
    told = {"Origin": origin.format(port=demo.port)}
    before = demo.get("/api/session")["version"]
    for method, path in (("POST", "/api/decision"), ("POST", "/api/source/close"), ("GET", "/api/session")):
        assert demo.ask(method, path, {"set": {"privacy.k": 3}}, headers=told).status == 403
    assert demo.get("/api/session")["version"] == before


def test_what_changes_something_says_where_it_comes_from(demo: Visitor) -> None:
    connection = http.client.HTTPConnection(LOOPBACK, demo.port, timeout=20)
    headers = {"Cookie": demo.cookie, "Content-Type": "application/json"}
    connection.request("POST", "/api/source/close", b"{}", headers)
    assert connection.getresponse().status == 403
    connection.close()
    assert demo.ask("GET", "/api/session", headers={"Sec-Fetch-Site": "cross-site"}).status == 403
    assert demo.ask("POST", "/api/undo", raw=b"a=b", headers={"Content-Type": "text/plain"}).status == 400


def test_no_websocket_is_opened(demo: Visitor) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    for visitor in (demo, Visitor(demo.port)):
        told = {**upgrade, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        assert visitor.ask("GET", "/api/session", headers=told).status != 101


@pytest.mark.parametrize(
    "path",
    [
        "/static/../serving.py",
        "/static/%2e%2e/serving.py",
        "/static/..%2fserving.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
    ],
)
def test_static_files_are_those_of_the_page(demo: Visitor, path: str) -> None:
    answer = demo.ask("GET", path)
    assert answer.status == 404
    assert b"import" not in answer.body


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/../session/x",
        "/api/runs/r1/..%2f..%2fetc/report.html",
        "/api/runs/r99/public.zip",
        "/api/runs/r99/%2e%2e.zip",
        "/api/jobs/..",
        "/api/nothing",
    ],
)
def test_no_address_leads_out_of_the_session(demo: Visitor, path: str) -> None:
    assert demo.ask("GET", path).status in (404, 405)


@pytest.mark.parametrize(
    "name",
    [
        "../../evil.csv",
        "/etc/evil.csv",
        "..\\..\\evil.csv",
        "a/../evil.csv",
        "evil.csv\x00",
        ".",
        "..",
        "x" * 900 + ".csv",
    ],
)
def test_a_name_of_a_file_is_nothing_but_a_name(made: Studio, name: str) -> None:
    visitor = Visitor.let_in(made)
    state = visitor.opened(name, b"a,b\n1,2\n3,4\n")
    assert "/" not in state["source"]["name"]
    assert ".." not in state["source"]["name"]
    files = [path for path in made.sessions.folder.rglob("*.csv") if path.read_bytes() == b"a,b\n1,2\n3,4\n"]
    assert files
    assert all(path.parent.parent.parent == made.sessions.folder for path in files)
    visitor.post("/api/source/close")


def test_names_and_categories_stay_text(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    state = visitor.opened(f"{SCRIPT.replace('/', '')}.csv", hostile())
    assert [column["name"] for column in state["columns"]] == ["age", MARKUP, SCRIPT]
    for path in ("/api/session", "/api/rows", f"/api/hierarchy?column={MARKUP.replace(' ', '%20')}"):
        answer = visitor.ask("GET", path)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
    page = visitor.ask("GET", "/").body
    assert b"alert(1)" not in page
    name = visitor.ask("GET", "/api/project").headers["content-disposition"]
    assert "<" not in name
    assert "\n" not in name


def test_an_upload_that_says_it_is_too_large_is_refused_at_once(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    with socket.create_connection((LOOPBACK, made.port), timeout=20) as raw:
        raw.sendall(_head(visitor, "/api/source/upload?name=big.csv", 5 << 30))
        answer = _whole(raw)
    assert answer.startswith("HTTP/1.1 413")
    assert "larger than 2 GB" in answer
    assert "kinfold studio FILE" in answer


def test_an_upload_that_is_too_large_without_saying_so_is_refused(quick: Studio) -> None:
    visitor = Visitor.let_in(quick)
    assert visitor.upload("big.csv", b"a,b\n" + b"1,2\n" * 100_000).status == 413
    with socket.create_connection((LOOPBACK, quick.port), timeout=20) as raw:
        head = _head(visitor, "/api/source/upload?name=big.csv", None)
        raw.sendall(head)
        chunk = b"fa00\r\n" + b"1" * 0xFA00 + b"\r\n"
        with contextlib.suppress(OSError):  # the server may have hung up already
            for _ in range(8):
                raw.sendall(chunk)
        assert raw.recv(65536).startswith(b"HTTP/1.1 413")
    assert not [*quick.sessions.folder.rglob("big.csv")]


def test_a_slow_upload_ends_with_a_clear_message(quick: Studio) -> None:
    visitor = Visitor.let_in(quick)
    with socket.create_connection((LOOPBACK, quick.port), timeout=20) as raw:
        raw.sendall(_head(visitor, "/api/source/upload?name=slow.csv", 100_000) + b"a,b\n")
        stalled = _whole(raw)
    assert stalled.startswith("HTTP/1.1 408")
    assert "no data arrived for 0.6 seconds" in stalled
    with socket.create_connection((LOOPBACK, quick.port), timeout=20) as raw:
        raw.sendall(_head(visitor, "/api/source/upload?name=slow.csv", 100_000))
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 10:
                raw.sendall(b"1,2\n")
                time.sleep(0.2)
        assert time.monotonic() - began < 9
    assert visitor.get("/api/session")["state"] == "empty"
    assert not [*quick.sessions.folder.rglob("slow.csv")]


def test_an_upload_that_breaks_off_leaves_nothing(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    with socket.create_connection((LOOPBACK, made.port), timeout=20) as raw:
        raw.sendall(_head(visitor, "/api/source/upload?name=half.csv", 100_000) + b"a,b\n1,2\n")
        wait_for(lambda: has_file(made, "half.csv"), "the half file")
    wait_for(lambda: not has_file(made, "half.csv"), "its end")
    assert visitor.get("/api/session")["state"] == "empty"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_what_is_opened_is_bounded_in_size_columns_and_memory(made: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made.sessions, "limits", replace(made.limits, upload_bytes=2_000_000, columns=50))
    visitor = Visitor.let_in(made)
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000)
    assert "'big.csv.gz' expands to more than 2 MB" in _refusal(visitor, "big.csv.gz", packed)
    zst = pa.compress(b"a,b\n" + b"1,2\n" * 1_000_000, codec="zstd", asbytes=True)
    assert "'big.csv.zst' expands to more than 2 MB" in _refusal(visitor, "big.csv.zst", zst)
    assert "'big.xlsx' expands to more than 2 MB" in _refusal(visitor, "big.xlsx", _workbook(210_000_000))
    wide = ",".join(f"c{i}" for i in range(20_000))
    assert "has 20,000 columns; the limit is 50" in _refusal(visitor, "wide.csv", f"{wide}\n{wide}\n".encode())
    with monkeypatch.context() as patched:
        patched.setattr(made.sessions.jobs, "_limits", replace(made.limits, worker_bytes=1 << 20))
        assert "more than the 1 MB of memory that one job may use" in _refusal(visitor, "fine.csv", b"a,b\n1,2\n3,4\n")
    assert visitor.opened("fine.csv", b"a,b\n1,2\n3,4\n")["source"]["rows"] == 2


def _workbook(size: int) -> bytes:
    """A workbook whose only sheet expands to so many bytes."""
    packed = io.BytesIO()
    book = zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with book, book.open("xl/worksheets/sheet1.xml", "w") as sheet:
        for _ in range(size // 1_000_000):
            sheet.write(bytes(1_000_000))
    return packed.getvalue()


def test_a_project_writes_and_reads_nothing_outside_its_session(made: Studio, tmp_path: Path) -> None:
    visitor = Visitor.let_in(made)
    packed = arx_projects.project(tmp_path, arx_projects.study())
    with zipfile.ZipFile(packed, "a") as archive:
        for place in ("../../outside.csv", "hierarchies/../../../outside.csv", str(tmp_path / "outside.csv")):
            archive.writestr(place, "1;*\n")
    assert visitor.opened("study.deid", packed.read_bytes())["source"]["rows"] > 0
    around = (made.sessions.folder.parent, tmp_path, Path.cwd())
    assert not [path for folder in around for path in folder.glob("outside*")]
    assert not list(made.sessions.folder.rglob("outside*"))
    text = visitor.get("/api/session")["policy"]["text"]
    for place in ("../../h.csv", "/etc/passwd", "hierarchies/../../h.csv"):
        column = f'\n[columns."one more"]\nrole = "quasi-identifier"\nhierarchy = {{ file = "{place}" }}\n'
        assert visitor.ask("POST", "/api/project", {"text": text + column}).status == 422, place


def _refusal(visitor: Visitor, name: str, content: bytes) -> str:
    """Send a file that cannot be opened, and return why."""
    assert visitor.upload(name, content).status == 200

    def failed() -> str:
        state = visitor.get("/api/session")
        return str(state["source"]["problems"]) if state["state"] == "failed" else ""

    return wait_for(failed, "the refusal")  # type: ignore[no-any-return]


def _whole(raw: socket.socket) -> str:
    """Read until the server hangs up, as it does after a body that it does not want."""
    return b"".join(iter(lambda: raw.recv(65536), b"")).decode()


def _head(visitor: Visitor, path: str, length: int | None) -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [f"POST {path} HTTP/1.1", f"Host: {LOOPBACK}:{visitor.port}", f"Cookie: {visitor.cookie}"]
    lines += [f"Origin: {visitor.origin}", "Content-Type: application/octet-stream", size, "", ""]
    return "\r\n".join(lines).encode()


def test_two_sessions_do_not_see_each_other(made: Studio) -> None:
    one, other = Visitor.let_in(made), Visitor.let_in(made)
    one.opened("mine.csv", b"secret_column,b\n1,2\n3,4\n")
    assert b"secret_column" not in other.ask("GET", "/api/session").body
    assert other.get("/api/session")["state"] == "empty"
    assert other.ask("GET", "/api/rows").status == 409
    for path in ("/api/runs/r1", "/api/runs/r2/verdict", "/api/jobs/j1", "/api/runs/r1/public.zip"):
        assert other.ask("GET", path).status == 404


def test_bodies_that_are_no_decision_are_refused(demo: Visitor) -> None:
    for raw in (b"[]", b"{", b'"x"', b"[" * 100_000, b'{"set": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, b"\xff\xff"):
        answer = demo.ask("POST", "/api/decision", raw=raw, headers={"Content-Type": "application/json"})
        assert answer.status in (400, 422), raw[:20]
    deep = {"set": {"columns.zip.hierarchy": {"tree": {}}}}
    place = deep["set"]["columns.zip.hierarchy"]["tree"]
    for _ in range(300):
        place["a"] = {}
        place = place["a"]
    assert demo.ask("POST", "/api/decision", deep).status in (400, 422)
    assert demo.ask("PUT", "/api/policy", {"text": 5}).status == 400
    assert demo.ask("PUT", "/api/policy", {"text": "a." * 200 + "b = 1"}).status == 422
    assert demo.get("/api/check")["problems"] == []


def test_the_server_sets_its_own_engine(demo: Visitor) -> None:
    text = demo.get("/api/session")["policy"]["text"]
    answer = demo.ask("PUT", "/api/policy", {"text": text + '\n[engine]\nspill = "/etc"\n'})
    assert answer.status == 422


def test_sessions_and_streams_are_bounded(quick: Studio) -> None:
    visitors = [Visitor.let_in(quick) for _ in range(QUICK.sessions - len([*quick.sessions]))]
    late = Visitor(quick.port)
    assert late.ask("GET", f"/?token={token_in(quick.address())}").status == 429
    streams = []
    for _ in range(QUICK.streams):
        stream = http.client.HTTPConnection(LOOPBACK, quick.port, timeout=20)
        stream.request("GET", "/api/events", headers={"Cookie": visitors[0].cookie})
        assert stream.getresponse().status == 200
        streams.append(stream)
    assert visitors[0].ask("GET", "/api/events").status == 429
    streams.pop().close()
    wait_for(lambda: _can_watch(visitors[0]), "a stream that is free again")
    for stream in streams:
        stream.close()


def _can_watch(visitor: Visitor) -> bool:
    stream = http.client.HTTPConnection(LOOPBACK, visitor.port, timeout=20)
    stream.request("GET", "/api/events", headers={"Cookie": visitor.cookie})
    status = stream.getresponse().status
    stream.close()
    return status == 200


def test_an_idle_session_is_forgotten_with_its_files_and_everything_when_the_server_stops() -> None:
    with studio(StudioLimits(idle_seconds=1.5)) as made:
        visitor = Visitor.let_in(made)
        visitor.opened("mine.csv", b"a,b\n1,2\n3,4\n")
        stream = http.client.HTTPConnection(LOOPBACK, made.port, timeout=30)
        stream.request("GET", "/api/events", headers={"Cookie": visitor.cookie})
        assert b"event: gone" in stream.getresponse().read()  # to its end: a page that is open is told
        stream.close()
        wait_for(lambda: not has_file(made, "mine.csv"), "the end of an idle session")
        assert visitor.ask("GET", "/api/session").status == 401
        Visitor.let_in(made).opened("mine.csv", b"a,b\n1,2\n3,4\n")
        folder: Path = made.sessions.folder
        assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert not folder.exists()


def test_a_bug_is_told_by_its_place_and_never_by_a_value(
    made: Studio, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    visitor = Visitor.let_in(made)
    visitor.opened("mine.csv", b"a,b\nsecret-value,2\nother-value,4\n")

    def broken(*_: object) -> None:
        raise KeyError("secret-value")

    visitor.decide(
        columns__a__role="quasi-identifier"
    )  # the risk that was computed when the table was opened is another one
    monkeypatch.setattr("kinfold.studio.source_routes.measure_column_risk", broken)
    with caplog.at_level(logging.DEBUG):
        answer = visitor.ask("GET", "/api/risk")
    assert answer.status == 500
    assert "KeyError in kinfold/studio/" in answer.problems[0]["what"]
    assert b"secret-value" not in answer.body
    assert "secret-value" not in caplog.text
    assert "Traceback" not in caplog.text


def test_errors_name_columns_and_counts_only(made: Studio) -> None:
    visitor = Visitor.let_in(made)
    visitor.opened("mine.csv", b"a,b\n" + b"".join(b"secret%d,%d\n" % (i % 9, i) for i in range(60)))
    visitor.ask(
        "POST", "/api/decision", {"set": {"columns.a.role": "quasi-identifier", "columns.a.type": "continuous"}}
    )
    said = json.dumps(visitor.get("/api/check"))
    assert "'a'" in said
    assert "secret" not in said
