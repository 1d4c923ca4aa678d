"""What holds for all tests: no profile of this machine and nothing learned on it changes what they see."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# Some tests interrupt what they start, which inherits it if whoever runs the tests had them ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Ranks that tests start inherit it.
os.environ["HYPERSLAB_PROFILE"] = "none"
os.environ["HYPERSLAB_LEARNED"] = "none"

# A machine that halts for half a second fails no test: limits of time are those of whole tests.
settings.register_profile("hyperslab", deadline=None)
settings.load_profile("hyperslab")
