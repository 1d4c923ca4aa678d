"""What holds for all tests: no profile of this machine and nothing learned on it changes what they see."""

from __future__ import annotations

import os

# Ranks that tests start inherit it.
os.environ["HYPERSLAB_PROFILE"] = "none"
os.environ["HYPERSLAB_LEARNED"] = "none"
