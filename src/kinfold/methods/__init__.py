"""Methods: arrays and tallies in, labels and levels out, and what becomes of each class."""
