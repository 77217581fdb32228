"""kinfold: release data about people so that nobody in it can be found and as little as possible is lost."""
