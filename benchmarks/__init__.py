"""Benchmarks: `python -m benchmarks [subject ...]`. Each subject is one file with a function `run`."""
