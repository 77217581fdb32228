"""Partitioners: records in, a class label for each out. Every class has at least k records."""
