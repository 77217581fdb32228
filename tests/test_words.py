"""Names, docstrings, comments and messages of the package avoid the words of `banned_words.toml`."""

from __future__ import annotations

from tools.size import find_banned_words, read_modules


def test_no_banned_word_is_used() -> None:
    places = find_banned_words(read_modules())
    assert not places, f"{len(places)} places: {', '.join(places[:20])}"
