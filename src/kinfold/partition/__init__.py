"""Partitioners: records in, a class label for each out."""
