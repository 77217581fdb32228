"""The certificate: what a recipient needs to check the promises, and nothing about the original."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kinfold.errors import DataError, VerifyError

CERTIFICATE_FORMAT = 2


@dataclass(frozen=True)
class Certificate:
    """What a recipient needs to check the promises, and nothing about the original."""

    content: Mapping[str, Any]

    @classmethod
    def read(cls, text: str) -> Certificate:
        """Read a certificate and check it against its own checksum."""
        try:
            content = json.loads(text, parse_constant=_refused)
            checksum = content.pop("checksum")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise DataError("the certificate cannot be read", fix="ask for the release again") from None
        if checksum != _digest(content):
            raise VerifyError("the certificate was changed after it was made", fix="ask for the release again")
        if content.get("format") != CERTIFICATE_FORMAT:
            raise DataError("the certificate is of another version", fix="update kinfold")
        return cls(content)

    def text(self) -> str:
        """Return the certificate as JSON, with its checksum."""
        return json.dumps({**self.content, "checksum": _digest(self.content)}, indent=2, ensure_ascii=False) + "\n"


def _refused(constant: str) -> Any:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
