"""What a release does not promise: the sentences of docs/promise.md that matter to every reader, by their numbers."""

from __future__ import annotations

LIMITS = {
    16: "Several releases about the same people can be combined.",
    17: "Under k alone, what is confidential can be inferred.",
    18: "Background knowledge can rule out records.",
    20: "Columns released as they are stay as they are.",
    21: "A small or complete population is hidden less.",
    22: "The certificate tells accidents, not forgers.",
    29: "Someone who knows the method can conclude more from what it chose than the classes show.",
}
