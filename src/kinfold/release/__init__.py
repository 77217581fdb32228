"""A release: the value, its certificate, its folder, its inspection and its reports."""
