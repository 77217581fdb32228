"""Profiling: what each column of a table is, and which records stand out."""
