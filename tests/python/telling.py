"""Files by which one process tells others: who sees one reads all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tell(path: Path, content: Any) -> None:
    """Write content as JSON; the file is not there before it is whole."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(content), encoding="utf-8")
    part.rename(path)
