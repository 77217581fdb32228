"""Resuming: a run that was stopped goes on where it was, if it is the same: by its input, its policy and kinfold."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from kinfold import __version__
from kinfold.errors import PolicyError, Problem
from kinfold.methods.blocks.saved_stages import BARE, Shelf

if TYPE_CHECKING:
    from kinfold.disk.saved_work import SavedWork
    from kinfold.request.policy import Policy

DIFFERS = {
    "source": "the input is not the one that the stopped run read",
    "policy": "the policy is not the one that the stopped run had",
    "kinfold": "the stopped run was one of another version of kinfold",
}
ANEW = "leave out --resume to begin anew"


def shelf_for(saved: SavedWork | None, policy: Policy, checksum: str | None) -> Shelf:
    """Return where a run keeps its work, with the work of a stopped run on it if that is asked for and is the same."""
    if saved is None:
        return BARE
    if checksum is None:
        if saved.resume:
            raise PolicyError("only what was read from a file can be resumed: nothing else has a checksum", fix=ANEW)
        return BARE
    differing = saved.begin({"source": checksum, "policy": digest_of(policy), "kinfold": __version__})
    if differing:
        raise PolicyError(Problem(f"cannot resume: {DIFFERS[part]}", ANEW) for part in differing)
    return saved


def digest_of(policy: Policy) -> str:
    """Return a checksum of a policy, and of the files of hierarchies that it names."""
    found = hashlib.sha256(policy.toml().encode())
    for _, column in sorted(policy.columns.items()):
        if column.hierarchy is not None and column.hierarchy.file is not None and column.hierarchy.file.is_file():
            found.update(column.hierarchy.file.read_bytes())
    return found.hexdigest()
