"""Values as JSON with every field there: on the wire unknown fields are left out, in the API they are null."""

from __future__ import annotations

from typing import Any

import msgspec

from numacore.cpuset import CpuSet
from numacore.topology import enc_hook


def explicit(value: Any) -> Any:
    """Structs as dicts with all their fields, cpusets in the kernel's list format, keys as texts."""
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {shown: explicit(getattr(value, name)) for shown, name in names}
    if isinstance(value, dict):
        return {str(key): explicit(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [explicit(each) for each in value]
    return str(value) if isinstance(value, CpuSet) else value


def encode(value: Any) -> bytes:
    """JSON of a value of the API; of the core's structs only what is known, unless they went through `explicit`."""
    return msgspec.json.encode(value, enc_hook=enc_hook)
