"""Engines: where rows live."""
