"""Makes a machine's tree from its description: a text file that lists paths with what stands in them.

    sys/devices/system/cpu/online = 0-15                   a file of one line
    sys/devices/system/cpu/cpu[0-3,8]/topology/core_id = 1 the same file in several folders
    .../thread_siblings = mask 80 0-1                      a mask for 80 CPUs
    .../cpu[0-1]/topology/core_id = self                   the number in the brackets
    .../meminfo <<                                         several lines, indented by a tab
    .../driver -> ../../bus/pci/drivers/nvme               a symbolic link
    .../online =                                           an empty file
    .../cpu7/                                              an empty folder

Lines that start with # are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from numacore.cpuset import CpuSet

MACHINES = Path(__file__).parent / "machines"
_GROUP = re.compile(r"\[([^\]]+)\]")


def build(description: str, root: Path) -> Path:
    """Writes the tree below `root`."""
    lines: Iterator[str | None] = iter(description.splitlines())
    line = next(lines, None)
    while line is not None:
        following = next(lines, None)
        if line.endswith(" <<"):
            content = []
            while following is not None and following.startswith("\t"):
                content.append(following[1:].replace("\\0", "\0") + "\n")
                following = next(lines, None)
            _write(root, line[:-3], "".join(content))
        elif line and not line.startswith("#"):
            _line(root, line)
        line = following
    return root


def machine(name: str, root: Path) -> Path:
    """The tree of a recorded machine."""
    return build((MACHINES / f"{name}.tree").read_text(), root)


def _line(root: Path, line: str) -> None:
    if " -> " in line:
        pattern, target = line.split(" -> ")
        for path, _ in _paths(pattern):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target)
    elif line.endswith("/"):
        for path, _ in _paths(line):
            (root / path).mkdir(parents=True, exist_ok=True)
    else:
        pattern, _, value = line.partition(" =")
        _write(root, pattern, _text(value.removeprefix(" ")))


def _write(root: Path, pattern: str, content: str) -> None:
    for path, number in _paths(pattern):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n" if content == "self\n" else content)


def _text(value: str) -> str:
    if value.startswith("mask "):
        _, bits, ids = (value + " ").split(" ", 2)
        return mask(int(bits), ids.strip()) + "\n"
    return value.replace("\\0", "\0") + "\n" if value else ""


def mask(bits: int, ids: str) -> str:
    """CPUs in the kernel's mask format: words of 32 bits, the first one as long as it must be."""
    digits = f"{CpuSet.parse(ids).bits:0{bits // 4}x}"
    first = len(digits) % 8
    words = [digits[:first]] if first else []
    return ",".join(words + [digits[i : i + 8] for i in range(first, len(digits), 8)])


def _paths(pattern: str) -> Iterator[tuple[str, int | None]]:
    """Every path of a pattern, with the number in its first brackets."""
    group = _GROUP.search(pattern)
    if group is None:
        yield pattern, None
        return
    for number in CpuSet.parse(group[1]):
        for path, _ in _paths(f"{pattern[: group.start()]}{number}{pattern[group.end() :]}"):
            yield path, number
