"""Tables that tests open in the studio."""

from __future__ import annotations

import random


def households(records: int = 60) -> bytes:
    """A table as people keep them: semicolons, decimal commas, missing values, several rows a household."""
    draw = random.Random(7)
    lines = ["household;age;income;region;illness"]
    for i in range(records):
        income = "" if i % 11 == 0 else f"{draw.uniform(900, 5000):.2f}".replace(".", ",")
        cells = (f"H{i // 3:03}", str(draw.randint(18, 90)), income, draw.choice("NSEW"), draw.choice(["flu", "gout"]))
        lines.append(";".join(cells))
    return ("\n".join(lines) + "\n").encode()


def diagnoses() -> bytes:
    """A table with codes of ICD-10."""
    codes = ["E11.9", "E11.2", "I10", "I25.1", "J45.0", "J44.9"]
    return ("age,code\n" + "".join(f"{20 + i % 50},{codes[i % 6]}\n" for i in range(120))).encode()


MARKUP = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>alert(1)</script>"


def hostile() -> bytes:
    """A table whose names and categories would like to be markup."""
    rows = "".join(f'{20 + i % 40},"{SCRIPT if i % 2 else MARKUP}","{chr(39)}; DROP TABLE x; --"\n' for i in range(40))
    return f'age,"{MARKUP}","{SCRIPT}"\n{rows}'.encode()
