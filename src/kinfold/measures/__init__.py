"""Measures of risk and loss: pure functions of arrays."""
