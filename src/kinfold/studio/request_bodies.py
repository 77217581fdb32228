"""What requests bring: JSON of a bounded size, files of a bounded size in a bounded time, numbers in the address."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request

from kinfold.studio.error_answers import Refused
from kinfold.studio.server_limits import GB, MB, Limits

KINDS = ("application/json", "application/octet-stream", "text/csv", "text/plain")


async def json_of(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the object that a request sends."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise Refused(400, "the request is no JSON", "send application/json")
    raw = b"".join([chunk async for chunk in pieces(request, limits, limits.body_bytes)])
    try:
        value = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        raise Refused(400, "the request is no JSON", "send one object") from None
    if not isinstance(value, dict):
        raise Refused(400, "the request is no JSON object", "send one object")
    return value


async def text_of(request: Request, limits: Limits) -> str:
    """Return the text that a request sends."""
    raw = b"".join([chunk async for chunk in pieces(request, limits, limits.body_bytes)])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(422, "the file is not UTF-8 text", "save it as UTF-8") from None


async def saved(request: Request, limits: Limits, path: Path) -> int:
    """Write the file that a request sends, and return its size; what is left of one that is refused is removed."""
    size = 0
    try:
        with path.open("xb") as file:
            async for chunk in pieces(request, limits, limits.upload_bytes):
                size += len(chunk)
                await asyncio.to_thread(file.write, chunk)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise Refused(413, f"the file cannot be kept: {error.strerror}", "free some space on the disk") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    if not size:
        path.unlink(missing_ok=True)
        raise Refused(422, "the file is empty", "choose another one")
    return size


async def pieces(request: Request, limits: Limits, most: int) -> AsyncIterator[bytes]:
    """Yield a body piece by piece; refuse one that is too large, at once where it says so, or too slow."""
    said = request.headers.get("content-length", "0")
    if not said.isdigit() or int(said) > most:
        raise _too_large(most)
    size, began = 0, time.monotonic()
    stream = request.stream().__aiter__()
    while True:
        left = limits.upload_seconds - (time.monotonic() - began)
        try:
            chunk = await asyncio.wait_for(stream.__anext__(), max(min(limits.stall_seconds, left), 0.001))
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise _too_slow(limits, left) from None
        except ClientDisconnect:
            raise Refused(400, "the upload broke off", "send it again") from None
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        if chunk:
            yield chunk


def whole(request: Request, name: str, default: int, most: int) -> int:
    """Return a whole number that the address of a request says, at most so large."""
    text = request.query_params.get(name, str(default))
    if not text.isdecimal() or len(text) > 12:
        raise Refused(400, f"{name} is no whole number", "give one from 0 up")
    return min(int(text), most)


def _too_large(most: int) -> Refused:
    told = f"{most / GB:g} GB" if most >= GB else f"{most / MB:g} MB"
    return Refused(413, f"this is more than {told}", "open a large file by its name instead: kinfold studio FILE")


def _too_slow(limits: Limits, left: float) -> Refused:
    if left <= limits.stall_seconds:
        return Refused(408, f"the upload took longer than {limits.upload_seconds:g} seconds", "kinfold studio FILE")
    return Refused(408, f"nothing came for {limits.stall_seconds:g} seconds", "send it again")
