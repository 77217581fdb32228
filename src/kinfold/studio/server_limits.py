"""How much of everything: bytes, seconds and numbers beyond which the studio refuses, and says so."""

from __future__ import annotations

from dataclasses import dataclass

MB, GB = 10**6, 10**9


@dataclass(frozen=True)
class Limits:
    """What one server allows."""

    upload_bytes: int = 2 * GB
    upload_seconds: float = 600.0
    stall_seconds: float = 20.0  # without a byte of a body
    body_bytes: int = 16 * MB  # of a request that is no upload
    idle_seconds: float = 3600.0  # after which a session is forgotten
    sessions: int = 100
    streams: int = 6  # of events, in a session
    runs: int = 50  # kept in a session
    waiting: int = 10  # jobs of a session in the queue
    queue: int = 500  # jobs of all sessions
    workers: int = 2  # processes for runs, and as many for what somebody waits for
    desks: int = 24  # open tables
    desk_bytes: int = 1 * GB  # of their files together
    columns: int = 2000  # of a table
    worker_bytes: int | None = None  # of memory, for one job; None: nine tenths of what is free as it begins
    undo: int = 200  # decisions that can be taken back
    text_bytes: int = 4 * MB  # of a policy
