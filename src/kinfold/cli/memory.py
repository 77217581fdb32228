"""Want of memory has several guises: told as what it is, wherever it shows first.

What cannot be caught here, a library that ends the process by itself, is told by `stopping`.
"""

from __future__ import annotations

import errno

from kinfold.errors import Unreachable

SIGNS = ("failed to map segment", "cannot allocate memory", "can't start new thread")  # of a library, of a thread


def short_of_memory(error: BaseException) -> Unreachable | None:
    """Return what to tell if an exception means that there is not enough memory."""
    said = str(error).lower() if isinstance(error, ImportError | RuntimeError) else ""
    refused = isinstance(error, OSError) and error.errno == errno.ENOMEM
    if isinstance(error, MemoryError) or refused or any(sign in said for sign in SIGNS):
        return Unreachable(
            "there is not enough memory for this table", fix="give it more memory, or fewer records at a time"
        )
    return None
