"""Tables of classes that failed in examinations by others: numbers of people by form, event dates, flags, staff."""

from __future__ import annotations

from typing import Any

import numpy as np

from proposals.tables import (
    CONFIDENTIAL,
    ID,
    QUASI,
    SINGLE_ROLES,
    Columns,
    ProposalTable,
    build,
    codes,
    days,
    seed,
    single_rows,
)

NUMBERS = {  # of people, with several rows each; no fact says so
    "hash": lambda i: f"{(i + 7) * 2654435761 % 2**62:032x}",
    "phone": lambda i: 447_000_000_000 + i * 7_919_011 % 999_999_999,
    "address": lambda i: f"10.{i % 7}.{i}.{i * 31 % 255}",
}


def numbered(name: str) -> ProposalTable:
    """Events of people who are numbered by what they use, beside places with fewer values."""
    rng = seed(name)
    who = rng.integers(0, 100, 700)
    columns = {"key": [NUMBERS[name](int(person)) for person in who], "cell": rng.integers(100, 140, 700) * 7}
    columns |= {"day": days(rng, 700), "amount": np.round(rng.lognormal(3, 1, 700), 2)}
    return build(f"numbered by {name}", columns, {"key": ID, "day": QUASI, "amount": CONFIDENTIAL}, unit="key")


def events(name: str) -> ProposalTable:
    """Days of sensitive events, which others may know; a flag that is empty for most; numbers like diagnoses; staff."""
    rng = seed(name)
    rows = 500
    texts = {"inmate_no": [f"A{rng.integers(1000, 9999)}BC" for _ in range(rows)]}
    flag = ["X" if draw < 0.1 else None for draw in rng.random(rows)]
    added: dict[str, tuple[Any, str]] = {
        "date_diagnosis": (days(rng, rows), QUASI),
        "loan_date": (days(rng, rows), QUASI),
        "inmate_no": (texts["inmate_no"], ID),
        "therapist": (codes(rng, rows, ["T1", "T2", "T3"]), ID),
        "dependency": (flag, CONFIDENTIAL),
        "taxpayer": (
            [f"{word}, {letter}." for word, letter in zip(surnames(rng, rows), "abcde" * 100, strict=True)],
            ID,
        ),
    }
    columns: Columns = single_rows(rng, rows) | {key: values for key, (values, _) in added.items()}
    return build(name, columns, SINGLE_ROLES | {key: role for key, (_, role) in added.items()})


def surnames(rng: np.random.Generator, rows: int) -> list[str]:
    """Frequent surnames, each several times."""
    return codes(
        rng, rows, ["Smith", "Meyer", "Garcia", "Rossi", "Dubois", "Nowak", "Jansen", "Huber", "Novak", "Lopez"]
    )


def answers(name: str) -> ProposalTable:
    """A survey whose ages end with 99 for missing, next to a top code; weights with many decimals; numbers of towns."""
    rng = seed(name)
    rows = 600
    columns = single_rows(rng, rows)
    columns["age"] = np.where(rng.random(rows) < 0.03, 99, rng.integers(16, 81, rows))
    town = rng.integers(0, 15, rows)
    columns |= {"Gemeinde": [f"Ort {letter}" for letter in np.array(list("abcdefghijklmno"))[town]]}
    columns |= {"BFS-Nr": 4001 + town * 7, "v9": np.round(rng.lognormal(0, 0.3, rows), 6)}
    roles = SINGLE_ROLES | {"Gemeinde": QUASI, "v9": "weight"}
    return build(name, columns, roles, missing={"age": ("99",)})


def families(name: str) -> ProposalTable:
    """Members of households, who have the same origin."""
    rng = seed(name)
    home = np.repeat(np.arange(200), rng.integers(2, 6, 200))
    columns = {"hid": home + 101} | single_rows(rng, len(home))
    columns |= {"ethnicity": np.array(codes(rng, 200, [1, 2, 3, 4, 5]))[home]}
    return build(name, columns, SINGLE_ROLES | {"hid": ID, "ethnicity": QUASI}, household="hid")


FAMILIES = [(numbered, [*NUMBERS]), (events, ["events"]), (answers, ["answers"]), (families, ["families"])]
