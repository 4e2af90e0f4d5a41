"""What the checks say: one finding for each thing that stops the kubelet or does something else than it seems to."""

from __future__ import annotations

from typing import Literal

import msgspec

from numacore.diagnosis import Reason

Severity = Literal["crash", "fatal", "silent", "warning"]
"""crash: its process dies by a panic. fatal: it refuses to start. silent: it starts and does something else than what is written.
warning: it starts and does what is written, which is seldom what is meant."""

Stage = Literal["flags", "gates", "load", "merge", "validate", "run", "managers", "state"]
"""Where in its start the kubelet looks: it comes to a stage only when the ones before found nothing."""
PROVEN = frozenset(range(34, 38))
"""Minor versions whose kubelet read thousands of random settings beside these checks (tests/oracle/settings). The rules of older ones
come from documents."""
STAGES: tuple[Stage, ...] = ("flags", "gates", "load", "merge", "validate", "run", "managers", "state")


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`reason` and `remedy` are codes with values for which pages have sentences; docs list them."""

    severity: Severity
    stage: Stage
    field: str
    """Path of the field in KubeletConfiguration, or the flag (`--name`); empty = the file as a whole."""
    where: str = ""
    """Name of the file that it stands in; empty = the flags, or where several sources come together."""
    words: str = ""
    """The kubelet's own words; empty = it says nothing, or the words of a library that differ by its version."""
    alternatives: tuple[str, ...] = ()
    """Words that it may say instead: it walks maps in any order."""
    reason: Reason
    remedy: Reason
    proven: bool = False
    """Whether a kubelet of this version was run beside the checks; else its rules were read in documents."""

    @property
    def stops(self) -> bool:
        return self.severity in ("crash", "fatal")
