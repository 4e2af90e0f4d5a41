"""Whatever stands in the files: an answer comes, its reader can decode it, and what is unknown is not 0."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numaagent import config
from numaagent.exporter.metrics import Page
from numaagent.exporter.node import Node
from tests.numaagent import trees
from tests.numaagent.conftest import seen
from tests.numaagent.test_container_use import TREE
from tests.numaagent.test_containers import CGROUPFS_V1

NODE = Path(__file__).parent / "emulated.tree"
STAT = "proc/stat <<\n\tcpu  8 0 0 8 0 0 0 0 0 0\n" + "".join(
    f"\tcpu{i} 1 0 0 1 0 0 0 0 0 0\n" for i in range(8)
)
DESCRIPTIONS = {"version 2": NODE.read_text() + TREE + STAT, "version 1": CGROUPFS_V1 + STAT}
OTHER = (
    b"", b"\n", b"0", b"-1\n", b"max\n", b"0-4294967295\n", b"0-3,2-1\n", b"99999999999999999999999\n", b"\x00" * 40,
    b"\xff\xfe\xfd", b"ffffffff," * 3000, b"1e400\n", b"NaN", b"[[[[[[", b"{}", b"null", b'{"policyName":', b"a: *b\n",
    b"cpu0 1 2 3\n", b"cpu \ncpu1 1 1 1 1\ncpu0 1 1 1 1\n", b"\ncpu 3\ncpu\ncpux 1\n", b"cpu0 -1 2 3 4 5 6 7 8\n", b"cpu99999999999 1 1 1 1 1 1 1 1\n", b"Node 0 MemTotal: -5 kB\n",
    b"anon N0=-1 N1=5\nfile N0=1 N1=1\n", b"anon N99999999=1\nfile N99999999=1\n", b"usage_usec -1\n", b"10 20 30 40 50\n",
    b"-9223372036854775809", b"18446744073709551616", b"cgroup2 / cgroup2 rw 0 0\n", b"A" * 300_000,
)  # fmt: skip


EXAMPLES = 12 if settings().derandomize else 500
"""Trees of each kind: few in `make test`, many in `make fuzz`."""


def survives(root: Path) -> None:
    node = Node(config.load({}, root=str(root)), started=1.0)
    try:
        seen(node, 100.0)
        node.sample(100.0, 1.0)
        node.adopt(node.survey(200.0, 1.0))
        seen(node, 200.0)
        node.sample(200.0, 2.0)
        Page(node, 1.0).text(200.0, 2.0, True)
    finally:
        node.close()


@pytest.mark.parametrize("description", DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_it_answers_whatever_stands_in_the_files(description: str, seed: int) -> None:
    dice = random.Random(seed)
    root = Path(tempfile.mkdtemp(prefix="na"))
    try:
        trees.build(description, root)
        files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        for path in dice.sample(files, min(len(files), dice.choice((1, 3, 10, 40)))):
            change(path, dice)
        survives(root)
    finally:
        shutil.rmtree(root)


def change(path: Path, dice: random.Random) -> None:
    data = path.read_bytes()
    match dice.randrange(5):
        case 0:
            path.write_bytes(data[: dice.randrange(len(data) + 1)])
        case 1:
            path.unlink()
        case 2:
            path.write_bytes(dice.randbytes(dice.randrange(60)))
        case 3:
            at = dice.randrange(len(data) + 1)
            path.write_bytes(data[:at] + dice.choice(OTHER) + data[at:])
        case _:
            path.write_bytes(dice.choice(OTHER))


def test_it_answers_for_a_tree_of_links_to_nowhere(tmp_path: Path) -> None:
    trees.build(DESCRIPTIONS["version 2"], tmp_path)
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]:
        path.unlink()
        path.symlink_to("/etc/passwd")
    survives(tmp_path)


def test_it_answers_for_a_tree_of_folders(tmp_path: Path) -> None:
    trees.build(DESCRIPTIONS["version 2"], tmp_path)
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]:
        path.unlink()
        path.mkdir()
    survives(tmp_path)
