"""A release: the value, its certificate, its folder, how it is checked and reported."""
