"""A studio on loopback for tests, and a visitor who speaks to it as a browser does."""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

from kinfold.studio.refusals import StudioLimits
from kinfold.studio.server import LOOPBACK, Studio, bind_socket, make_server

PATIENCE = 120.0  # seconds that something may take on a busy machine


@contextmanager
def studio(limits: StudioLimits | None = None, **given: Any) -> Iterator[Studio]:
    """Serve in a thread for as long as the `with` block lasts."""
    with bind_socket(None) as listener:
        made = Studio(listener.getsockname()[1], limits, **given)
        server = make_server(made.app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            wait_for(lambda: server.started, "the server")
            yield made
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def wait_for(found: Any, what: str, seconds: float = PATIENCE) -> Any:
    """Ask until there is an answer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if answer := found():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come within {seconds} seconds")


def has_file(made: Studio, name: str) -> bool:
    """Tell whether a session holds a file of this name."""
    # os.walk skips a folder that is deleted meanwhile; rglob raises
    return any(name in names for _, _, names in os.walk(made.sessions.folder))


class Answer:
    """What came back."""

    def __init__(self, response: http.client.HTTPResponse, body: bytes) -> None:
        self.status, self.headers, self.body = response.status, response.headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problems(self) -> list[dict[str, Any]]:
        return list(self.json["error"]["problems"])


class Visitor:
    """One browser: it has a cookie once it was let in, and says where its requests come from."""

    def __init__(self, port: int) -> None:
        self.port, self.cookie = port, ""
        self.origin = f"http://{LOOPBACK}:{port}"

    @classmethod
    def let_in(cls, made: Studio) -> Visitor:
        """Open the address that a terminal would show."""
        visitor = cls(made.port)
        split = urlsplit(made.address())
        answer = visitor.ask("GET", f"/?{split.query}")
        assert answer.status == 303, answer.body
        assert answer.headers["location"] == "/"
        return visitor

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        """Send a request; `body` goes as JSON, `raw` as it is."""
        told = {"Cookie": self.cookie} if self.cookie else {}
        if method not in ("GET", "HEAD"):
            told["Origin"] = self.origin
            told["Content-Type"] = "application/json" if raw is None else "application/octet-stream"
        content = raw if raw is not None else None if method in ("GET", "HEAD") else json.dumps(body or {}).encode()
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, content, {**told, **(headers or {})})
            response = connection.getresponse()
            answer = Answer(response, response.read())
        finally:
            connection.close()
        if given := answer.headers.get("set-cookie"):
            self.cookie = given.split(";")[0]
        return answer

    def get(self, path: str, **names: str) -> Any:
        """Ask for something that is there."""
        query = "&".join(f"{key}={quote(value, safe='')}" for key, value in names.items())
        answer = self.ask("GET", f"{path}?{query}" if query else path)
        assert answer.status == 200, (path, answer.status, answer.body)
        return answer.json

    def post(self, path: str, body: Any = None, status: int | None = None, method: str = "POST") -> Any:
        """Do something that works."""
        answer = self.ask(method, path, body)
        assert answer.status in ((status,) if status else (200, 202)), (path, answer.status, answer.body)
        return answer.json

    def ready(self) -> Any:
        """Wait until the table is open, and return the state."""
        state = wait_for(lambda: _settled(self.get("/api/session")), "the table")
        assert state["state"] == "ready", state["source"]
        return state

    def demo(self) -> Any:
        """Open the demo table."""
        self.post("/api/source/demo")
        return self.ready()

    def upload(self, name: str, content: bytes) -> Answer:
        """Send a file."""
        return self.ask("POST", f"/api/source/upload?name={quote(name, safe='')}", raw=content)

    def opened(self, name: str, content: bytes) -> Any:
        """Send a file and wait until it is open."""
        answer = self.upload(name, content)
        assert answer.status == 200, answer.body
        return self.ready()

    def decide(self, **keys: Any) -> Any:
        """Set keys of the policy, `privacy__k=5`."""
        return self.post("/api/decision", {"set": {key.replace("__", "."): value for key, value in keys.items()}})

    def run(self, changes: Mapping[str, Any] | None = None) -> Any:
        """Run the policy and wait until that is over."""
        return self.over(self.post("/api/runs", {"set": dict(changes)} if changes else {}, 202)["id"])

    def over(self, ident: str) -> Any:
        """Wait for a run to be over."""
        return wait_for(lambda: _over(self.get(f"/api/runs/{ident}")), f"run {ident}")

    def job(self, kind: str) -> Any:
        """Have a longer look, and return what was seen."""
        ident = self.post("/api/jobs", {"kind": kind}, 202)["id"]
        return wait_for(lambda: _over(self.get(f"/api/jobs/{ident}")), f"the {kind}")


def _settled(state: Any) -> Any:
    return state if state["state"] in ("ready", "failed") else None


def _over(told: Any) -> Any:
    return told if told["state"] in ("done", "failed", "cancelled") else None


def token_in(address: str) -> str:
    """Return the token of an address."""
    found = re.search(r"token=([\w-]+)", address)
    assert found
    return found[1]
