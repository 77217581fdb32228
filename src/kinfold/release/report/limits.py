"""What a release does not promise, in the sentences of docs/promise.md that matter to every reader of a page."""

from __future__ import annotations

LIMITS = (
    "Several releases about the same people can be combined.",
    "Under k alone, what is confidential can be inferred.",
    "Background knowledge can rule out records.",
    "Columns released as they are stay as they are.",
    "A small or complete population is hidden less.",
    "The certificate tells accidents, not forgers.",
)
