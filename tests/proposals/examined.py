"""Tables of classes that failed in examinations by others: numbers of people by form, event dates, flags, staff ..."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from proposals.tables import (
    CONFIDENTIAL,
    ID,
    QUASI,
    REMOVE,
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


def own_places(name: str) -> ProposalTable:
    """Visits of patients, each with a post code of their own: that does not make their numbers those of places."""
    rng = seed(name)
    who = np.repeat(np.arange(150), rng.integers(1, 7, 150))
    codes_of = {"zip": [f"{62_600 + i % 60}-{1000 + i * 37}" for i in range(150)], "sex": codes(rng, 150, ["F", "M"])}
    columns = {"MRN": who * 37 + 440_000} | {key: [values[i] for i in who] for key, values in codes_of.items()}
    columns |= {"charge": np.round(rng.lognormal(7, 1, len(who)), 2)}
    return build(name, columns, {"MRN": ID, "zip": QUASI, "sex": QUASI, "charge": CONFIDENTIAL}, unit="MRN")


def unnamed(name: str) -> ProposalTable:
    """Rows of people with numbers and facts without names: what one column determines says that it numbers somebody."""
    rng = seed(name)
    who = np.repeat(np.arange(160), rng.integers(1, 6, 160))
    facts = {
        "v1": rng.permutation(480)[:160] + 7100,
        "v2": rng.integers(1932, 2006, 160),
        "v3": rng.integers(1, 3, 160),
    }
    facts |= {"v7": rng.integers(10_115, 10_200, 160)}
    columns: Columns = {key: values[who] for key, values in facts.items()}
    columns |= {"v4": codes(rng, len(who), ["I10", "E119", "J45", "F321", "C509", "N18"])}
    columns |= {"v6": np.round(rng.lognormal(6, 1, len(who)), 2)}
    return build(name, columns, {"v1": ID, "v2": QUASI, "v4": CONFIDENTIAL, "v6": CONFIDENTIAL}, unit="v1")


def waves(name: str) -> ProposalTable:
    """People in several years: weights, one of them the same in all years; a number that links their rows."""
    rng = seed(name)
    who = np.tile(np.arange(150), 3)
    facts = {"yrbirth": rng.integers(1930, 1990, 150), "sexe": rng.integers(1, 3, 150)}
    facts |= {"cciw": np.round(rng.lognormal(0, 0.5, 150), 5), "start": np.round(rng.lognormal(3, 1, 150), 3)}
    facts["yrbirth"][:6] = -9_999_991
    columns: Columns = {"mergeid": [f"DE-{i * 7919 % 99_991:06}" for i in who]}
    columns |= {key: values[who] for key, values in facts.items()} | {"date": days(rng, len(who), span=900)}
    columns |= {"pond_cal": np.round(rng.lognormal(7, 0.6, len(who)), 4)}
    roles = {"mergeid": ID, "yrbirth": QUASI, "sexe": QUASI, "cciw": "weight", "pond_cal": "weight", "start": REMOVE}
    truth = {"missing": {"yrbirth": ("-9999991",)}, "dependent": frozenset({"start"})}
    return build(name, columns, roles | {"date": QUASI}, unit="mergeid", **truth)


def followed(name: str) -> ProposalTable:
    """Cases of a register: the days between two dates, of which half of the people have only one."""
    rng = seed(name)
    rows = 420
    first, length, dead = days(rng, rows, span=3000), rng.integers(1, 3000, rows), rng.random(rows) < 0.45
    last = [day + timedelta(days=int(n)) if d else None for day, n, d in zip(first, length, dead, strict=True)]
    columns = single_rows(rng, rows) | {"DXDAT": first, "EXITDAT": last, "SURV": length}
    roles = SINGLE_ROLES | {"DXDAT": QUASI, "EXITDAT": QUASI, "SURV": QUASI}
    return build(name, columns, roles, dependent=frozenset({"SURV"}))


def births(name: str) -> ProposalTable:
    """Births: the weight of a newborn in grams is no sampling weight; letters of sex without a telling name."""
    rng = seed(name)
    rows = 480
    columns: Columns = {"moeder_lft": rng.normal(31, 5, rows).astype(int), "g": codes(rng, rows, ["m", "v"])}
    columns |= {"gewicht": rng.normal(3400, 500, rows).astype(int), "apgar5": rng.integers(5, 11, rows)}
    columns |= {"pc4": rng.integers(1011, 1110, rows), "zwduur": rng.normal(39, 2, rows).astype(int)}
    return build(name, columns, {"g": QUASI, "pc4": QUASI, "gewicht": CONFIDENTIAL})


def plates(name: str) -> ProposalTable:
    """Trips of devices: plates that look like British post codes, positions that look like weights, codes of towns."""
    rng = seed(name)
    who = np.repeat(np.arange(45), 12)
    town = rng.integers(0, 5, len(who))
    columns: Columns = {"device": [f"{i * 7919:012x}" for i in who], "sex": np.array(codes(rng, 45, ["f", "m"]))[who]}
    columns |= {"lat": np.round(48 + rng.random(45), 6)[who], "lng": np.round(11 + rng.random(45), 6)[who]}
    columns |= {"kz": [f"AB{i // 26 + 12}{chr(65 + i % 26)}C" for i in range(len(who))]}
    columns |= {"Gemeinde": np.array([f"Ort {letter}" for letter in "abcde"])[town], "km": rng.gamma(3, 12, len(who))}
    columns |= {"AGS": np.array(["09162000", "09184112", "09184120", "09175115", "05315000"])[town]}
    roles = {"device": ID, "sex": QUASI, "lat": REMOVE, "lng": REMOVE, "kz": ID, "Gemeinde": QUASI, "AGS": QUASI}
    return build(name, columns, roles | {"km": CONFIDENTIAL}, unit="device")


def unnamed_numbers(name: str) -> ProposalTable:
    """Numbers whose name says little or lies: codes of places, days counted by a program, ranks, household incomes."""
    rng = seed(name)
    rows = 600
    columns = single_rows(rng, rows) | {"ln": np.arange(rows) + 1, "q17": rng.integers(10, 990, rows)}
    columns |= {"d_adm": rng.integers(44_197, 44_900, rows), "rank": rng.permutation(rows) + 1}
    columns |= {"zw_dni": np.where(rng.random(rows) < 0.6, 0, rng.geometric(0.1, rows))}
    columns |= {"hh_income": np.round(rng.lognormal(7.6, 0.5, rows), -1)}
    columns |= {"diag_year": rng.integers(2005, 2021, rows), "diag_m": rng.integers(1, 13, rows)}
    columns |= {
        "lives_in": [f"{s} {rng.integers(1, 99)}" for s in codes(rng, rows, ["Hauptstr.", "Am Bach", "Burgweg"])]
    }
    columns |= {"seen": [f"{d}\N{DEGREE SIGN}{rng.integers(10, 59)}'N" for d in rng.integers(47, 55, rows)]}
    columns |= {
        "by": codes(rng, rows, ["Dr. Oakfield", "Prof. Rust", "PD Lang"]),
        "phrf": np.round(rng.lognormal(8, 0.5, rows), 3),
    }
    gone = dict.fromkeys(("q17", "d_adm", "seen", "diag_m"), REMOVE) | dict.fromkeys(
        ("ln", "rank", "lives_in", "by"), ID
    )
    roles = gone | {"zw_dni": CONFIDENTIAL, "hh_income": CONFIDENTIAL, "diag_year": QUASI, "phrf": "weight"}
    return build(name, columns, SINGLE_ROLES | roles)


def payments(name: str) -> ProposalTable:
    """Payments by masked cards, with the seconds between two times that are almost the same, over months."""
    rng = seed(name)
    who = rng.integers(0, 60, 720)
    cards = [f"4{i * 7919 % 99_999:05}******{i * 31 % 9999:04}" for i in range(60)]
    begun = [datetime(2023, 1, 1) + timedelta(seconds=int(second)) for second in rng.integers(0, 15_000_000, 720)]
    seconds = rng.gamma(1, 90, 720).astype(int)
    ended = [first + timedelta(seconds=int(each)) for first, each in zip(begun, seconds, strict=True)]
    columns: Columns = {"pan": [cards[i] for i in who], "begun": begun, "ended": ended, "seconds": seconds}
    columns |= {"amount": np.round(rng.lognormal(3, 1, 720), 2)}
    roles = {"pan": ID, "begun": QUASI, "ended": QUASI, "seconds": QUASI, "amount": CONFIDENTIAL}
    return build(name, columns, roles, unit="pan", dependent=frozenset({"seconds"}))


def panel_of_codes(name: str) -> ProposalTable:
    """People in five waves, whose number and facts have names that say nothing; a strength that looks like an age."""
    rng = seed(name)
    who = np.tile(np.arange(120), 5)
    columns: Columns = {"idauniq": (rng.permutation(99_999)[:120] + 100_000)[who], "grip": rng.normal(50, 18, 600)}
    columns["grip"] = columns["grip"].clip(8, 110).astype(int)
    columns |= {"age_seen": np.where(rng.random(600) < 0.02, 300, rng.integers(50, 90, 120)[who])}
    columns |= {"ldl": np.round(rng.normal(3, 0.6, 600), 2)}
    roles = {"idauniq": ID, "age_seen": QUASI, "ldl": CONFIDENTIAL}
    return build(name, columns, roles, unit="idauniq", missing={"age_seen": ("300",)})


def accounts(name: str) -> ProposalTable:
    """Payments by accounts whose numbers have gaps, and nothing about people; days as 230131; 666 for missing."""
    rng = seed(name)
    who = rng.integers(0, 90, 900)
    columns: Columns = {"k7": rng.permutation(999_999)[:90][who], "amount": np.round(rng.lognormal(3, 1, 900), 2)}
    columns |= {"paid": [int(f"{day:%y%m%d}") for day in days(rng, 900, date(2021, 1, 1), 1000)]}
    columns |= {"wkhtot": np.where(rng.random(900) < 0.2, 666, rng.normal(39, 11, 900).clip(1, 90).astype(int))}
    roles = {"k7": ID, "amount": CONFIDENTIAL, "paid": QUASI, "wkhtot": CONFIDENTIAL}
    return build(name, columns, roles, unit="k7", missing={"wkhtot": ("666",)})


def tenants(name: str) -> ProposalTable:
    """Names that no list has, written surname first; debts in brackets; the same few remarks."""
    rng = seed(name)
    rows = 320
    last, first = (
        codes(rng, rows, [*words.split()])
        for words in ("Brandl Heß Jürgens Öztürk Maurer Dörr Eilers", "Elif Cem Heidi Uwe Ole Mia")
    )
    columns: Columns = {"Mieter": [f"{one}, {other}" for one, other in zip(last, first, strict=True)]}
    columns |= {"Saldo": [f"${x:,.2f}" if x > 0 else f"(${-x:,.2f})" for x in rng.normal(900, 700, rows)]}
    columns |= {"Anm.": codes(rng, rows, [None, "pays after the second reminder only"])}
    columns |= {"Ortsteil": codes(rng, rows, ["Nord", "Aue", "Mitte"])}
    roles = {"Mieter": ID, "Saldo": CONFIDENTIAL, "Anm.": REMOVE, "Ortsteil": QUASI}
    return build(name, columns, roles, unit="Mieter")


def pedigrees(name: str) -> ProposalTable:
    """Families that are counted from 1, like ages; 1900 for an unknown year of birth; zeros among rounded incomes."""
    rng = seed(name)
    rows = 360
    columns: Columns = {"fam": np.repeat(np.arange(60), 6) + 1, "sex": codes(rng, rows, [1, 2])}
    columns |= {"yob": np.where(rng.random(rows) < 0.05, 1900, rng.integers(1930, 2015, rows))}
    columns |= {"AnrEink": np.where(rng.random(rows) < 0.6, 0, rng.integers(1, 90, rows) * 10)}
    roles = {"fam": ID, "sex": QUASI, "yob": QUASI, "AnrEink": CONFIDENTIAL}
    return build(name, columns, roles, household="fam", missing={"yob": ("1900",)})


def gifts(name: str) -> ProposalTable:
    """Gifts of people, each with a full post code of their own, which numbers nobody."""
    rng = seed(name)
    who = np.sort(rng.integers(0, 140, 700))
    facts = {"Salut": codes(rng, 140, ["Mr", "Mrs", "Ms"]), "Born": rng.integers(1932, 2000, 140)}
    facts |= {"PC": [f"LS{i % 19 + 1} {i % 9 + 1}A{'JLNPQRS'[i % 7]}" for i in range(140)]}
    columns: Columns = {"Constituent": [f"C-{i * 37 % 997:04}" for i in who]}
    columns |= {key: [values[i] for i in who] for key, values in facts.items()}
    columns |= {"Gift": [f"£{x:,.2f}" for x in rng.choice([5, 10, 25, 50, 250], 700)]}
    roles = {"Constituent": ID, "Salut": QUASI, "Born": QUASI, "PC": QUASI}
    return build(name, columns, roles, unit="Constituent")


def badges(name: str) -> ProposalTable:
    """Months of people whose badge is their number, as is the name of their network."""
    rng = seed(name)
    who = np.repeat(np.arange(60), 12)
    columns: Columns = {
        "badge": [f"TLD{i * 7919 % 9973:04}" for i in who],
        "net": [f"home-{i * 37 % 499}" for i in who],
    }
    columns |= {"m_f": np.array(codes(rng, 60, ["f", "m"]))[who], "hp10": np.round(rng.gamma(0.5, 0.2, 720), 3)}
    return build(name, columns, {"badge": ID, "net": ID, "m_f": QUASI, "hp10": CONFIDENTIAL}, unit="badge")


def microcensus(name: str) -> ProposalTable:
    """A number with many decimals and without a name: perhaps weights. It is a question."""
    rng = seed(name)
    columns = single_rows(rng, 500) | {"ez9": np.round(rng.lognormal(6.8, 0.35, 500), 4)}
    return build(name, columns, SINGLE_ROLES | {"ez9": "weight"})


AGAIN = (
    tenants,
    pedigrees,
    gifts,
    badges,
    microcensus,
    accounts,
    panel_of_codes,
    unnamed_numbers,
    payments,
    own_places,
    unnamed,
    waves,
    followed,
    births,
    plates,
)
FAMILIES = [
    (numbered, [*NUMBERS]),
    (events, ["events"]),
    (answers, ["answers"]),
    (families, ["families"]),
    *((maker, [maker.__name__.replace("_", " ")]) for maker in AGAIN),
]
