"""The pictures of the documentation, drawn from what kinfold computes: `make pictures` writes docs/images/*.svg."""
