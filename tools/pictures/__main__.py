"""Draw every picture of the documentation that is made by a program: docs/images/*.svg.

python -m tools.pictures            all of them
python -m tools.pictures flow       those whose name has this word
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.pictures import charts, measures, methods, models, start

FOLDER = Path(__file__).parents[2] / "docs" / "images"


def main() -> None:
    """Draw, and write what was drawn."""
    for part in (start, models, methods, measures, charts):
        for name, picture in part.pictures():
            if all(word in name for word in sys.argv[1:]):
                (FOLDER / f"{name}.svg").write_text(picture if isinstance(picture, str) else picture.svg(), "utf-8")


if __name__ == "__main__":
    main()
