"""Reproduction: what the five papers print, computed again, ours beside theirs."""

from __future__ import annotations

from kinfold.reproduction.papers_run import PAPERS, Reproduced, Reproduction, reproduce

__all__ = ["PAPERS", "Reproduced", "Reproduction", "reproduce"]
