"""The file in which a simulator tells where its exporters answer."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path


def write(file: Path, exporters: Sequence[tuple[str, str]]) -> None:
    """Writes (name, address) pairs as JSON, whole at once: a reader sees all of it or nothing."""
    found = {"exporters": [{"name": name, "url": url} for name, url in exporters]}
    file.parent.mkdir(parents=True, exist_ok=True)
    made = file.with_name(f".{file.name}.{os.getpid()}")
    made.write_text(json.dumps(found, indent=1) + "\n")
    made.replace(file)
