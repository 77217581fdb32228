"""Generated tables: no deadline on a busy machine; CI draws the same ones every time, other runs draw new ones."""

import os

from hypothesis import settings

settings.register_profile("explore", deadline=None)
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.load_profile("repeat" if os.environ.get("CI") else "explore")
