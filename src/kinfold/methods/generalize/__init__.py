"""Generalizers: a tally and hierarchies in, the level of every cell and the rows to suppress out."""
