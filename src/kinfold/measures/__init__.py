"""Measures of risk and information loss of a release. Formulas on arrays are in `formulas`."""

from __future__ import annotations
