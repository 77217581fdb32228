"""The reference of the policy, from the code that reads it: the JSON schema, and the table of keys in docs/policy.md.

python -m tools.reference            writes docs/policy.schema.json and the table
python -m tools.reference --check    says what is old, and ends with code 1
"""

from __future__ import annotations

import sys
from pathlib import Path

from kinfold.policy.schema import describe_keys, format_schema

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- every key: made by make docs -->\n", "<!-- end of every key -->\n"


def table() -> str:
    """Return the keys as a table."""
    rows = [f"| `{path}` | {held} | {default} | {told} |" for path, held, default, told in describe_keys()]
    return "\n".join(["| key | holds | default | what it is |", "| --- | --- | --- | --- |", *rows, ""])


def files() -> dict[Path, str]:
    """Return what the files have to hold."""
    page = DOCS / "policy.md"
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return {page: f"{before}{BEGIN}\n{table()}\n{END}{after}", DOCS / "policy.schema.json": format_schema()}


def old() -> list[str]:
    """Return the files that are not what the code says."""
    return [path.name for path, text in files().items() if not path.exists() or path.read_text("utf-8") != text]


def main() -> None:
    """Write the files, or check them."""
    if "--check" not in sys.argv[1:]:
        for path, text in files().items():
            path.write_text(text, "utf-8")
    if wrong := old():
        sys.exit(f"{', '.join(wrong)}: not what the code says; make docs makes them anew")


if __name__ == "__main__":
    main()
