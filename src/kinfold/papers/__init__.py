"""The papers: their printed tables and figures, computed again and compared."""

from __future__ import annotations

from kinfold.papers.reproduction import PAPERS, ExhibitOutcome, Reproduction, reproduce

__all__ = ["PAPERS", "ExhibitOutcome", "Reproduction", "reproduce"]
