"""Small programs for those who work on kinfold; nothing here is part of the package."""
