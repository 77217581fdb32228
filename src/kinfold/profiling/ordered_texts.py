"""Scales: texts that have an order, found in their words or in their numbers.

low, medium, high        words that stand in one of the lists below
18-29, 30-44, 45+        bands, by where they start; `<`, `under` come before, `>`, `+` and `over` after
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kinfold.hierarchy import TOP

MOST = 30  # values of a scale

WORDS = (
    "none|very low|low|lower|medium low|medium|middle|moderate|average|medium high|high|higher|very high|extreme",
    "very bad|bad|poor|fair|neutral|satisfactory|good|very good|excellent",
    "never|almost never|rarely|seldom|sometimes|occasionally|often|frequently|usually|very often|always",
    "strongly disagree|disagree|rather disagree|neutral|undecided|rather agree|agree|strongly agree",
    "very dissatisfied|dissatisfied|neutral|satisfied|very satisfied",
    "none|mild|moderate|severe|very severe|critical",
    "tiny|small|medium|large|very large|huge",
    "xxs|xs|s|m|l|xl|xxl|xxxl",
    "none|preschool|primary|lower secondary|secondary|upper secondary|high school|vocational|bachelor|master|doctorate",
    "daily|weekly|monthly|quarterly|yearly",
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday",
    "january|february|march|april|may|june|july|august|september|october|november|december",
    "keine|sehr niedrig|sehr gering|niedrig|gering|mittel|hoch|sehr hoch",
    "sehr schlecht|schlecht|mangelhaft|ausreichend|mittel|befriedigend|gut|sehr gut|ausgezeichnet",
    "nie|fast nie|selten|manchmal|gelegentlich|oft|haufig|meistens|sehr oft|immer",
    "stimme gar nicht zu|stimme nicht zu|stimme eher nicht zu|teils teils|stimme eher zu|stimme zu|stimme voll zu",
    "aucun|tres faible|faible|bas|moyen|eleve|haut|tres eleve",
    "jamais|rarement|parfois|quelquefois|souvent|tres souvent|toujours",
    "tres mauvais|mauvais|passable|moyen|bon|tres bon|excellent",
    "ninguno|muy bajo|bajo|medio|alto|muy alto",
    "nunca|casi nunca|raramente|a veces|a menudo|casi siempre|siempre",
    "muy malo|malo|regular|bueno|muy bueno|excelente",
    "nessuno|molto basso|basso|medio|alto|molto alto",
    "mai|raramente|a volte|spesso|sempre",
    "zeer laag|laag|midden|gemiddeld|hoog|zeer hoog",
    "nooit|zelden|soms|vaak|altijd",
    "とても低い|低い|普通|高い|とても高い",
)
PLACES = tuple({word: at for at, word in enumerate(scale.split("|"))} for scale in WORDS)
NUMBER = r"\d+(?:[.,]\d+)?\s*[a-z€$£%]*"
BELOW = r"<=?|≤|under|below|unter|bis|up to|moins de|menos de"
UNTIL = "-|\N{EN DASH}|to|bis|a|à|until"
OPEN = r"\+|and (?:over|more|older)|oder mehr|et plus|y más|or more"
BAND = re.compile(
    rf"(?P<below>{BELOW})?\s*(?P<low>{NUMBER})\s*(?:(?:{UNTIL})\s*(?P<high>{NUMBER})|(?:{OPEN}))?\s*", re.IGNORECASE
)
ABOVE = re.compile(r"(>=?|≥|over|above|über|plus de|más de)\s*", re.IGNORECASE)


def scale_of(values: Sequence[str]) -> tuple[str, ...]:
    """Return values in their order, or nothing where they have none that is known.

    >>> scale_of(["high", "low", "Medium"]), scale_of(["45+", "18-29", "30-44"]), scale_of(["red", "blue", "low"])
    (('low', 'Medium', 'high'), ('18-29', '30-44', '45+'), ())
    """
    if not 2 < len(values) <= MOST or TOP in values:
        return ()
    plain = {value: re.sub(r"[\s_-]+", " ", value).strip().casefold() for value in values}
    for places in PLACES:
        if set(plain.values()) <= set(places) and len(set(plain.values())) == len(values):
            return tuple(sorted(values, key=lambda value: places[plain[value]]))
    return _bands(values)


def _bands(values: Sequence[str]) -> tuple[str, ...]:
    """Order bands by where they start; numbers alone are none, and two that start together have no order."""
    starts = {value: start for value in values if (start := _start(value)) is not None}
    if len(starts) < len(values) or len(set(starts.values())) < len(values):
        return ()
    wide = sum(not value.strip().replace(".", "").isdigit() for value in values)
    return tuple(sorted(values, key=lambda value: starts[value])) if wide >= len(values) - 2 else ()


def _start(value: str) -> tuple[float, int] | None:
    text = value.strip()
    above = ABOVE.match(text)
    band = BAND.fullmatch(text[above.end() :] if above else text)
    if band is None or (above and band["high"]):
        return None
    low = re.sub(r"[^\d.]", "", band["low"].replace(",", "."))
    return float(low), -1 if band["below"] else 1 if above else 0
