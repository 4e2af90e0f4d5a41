"""Reading files: nothing outside the root, nothing without bound, and every failure told with its cause."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from numaagent.readers.files import Files, Source
from numaagent.readers.problems import MAX_PROBLEMS
from numacore.cpuset import CpuSet
from tests.servers import ROOT


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("outside\n")
    inside = tmp_path / "root"
    (inside / "sys" / "real").mkdir(parents=True)
    (inside / "sys" / "real" / "value").write_text("7\n")
    return inside


@pytest.fixture
def source(root: Path) -> Source:
    return Files(str(root)).reader("test")


def causes(source: Source) -> list[tuple[str, str]]:
    return [(problem.what, problem.cause) for problem in source.files.problems.listed()]


def test_it_reads_a_number(source: Source, root: Path) -> None:
    assert source.number(f"{root}/sys/real/value") == 7
    assert causes(source) == []


def test_it_takes_absolute_links_as_links_inside_the_root(source: Source, root: Path) -> None:
    (root / "sys" / "file").symlink_to("/sys/real/value")
    (root / "sys" / "folder").symlink_to("/sys/real")
    assert source.number(f"{root}/sys/file") == 7
    assert source.number(f"{root}/sys/folder/value") == 7


def test_it_never_leaves_the_root(source: Source, root: Path) -> None:
    (root / "sys" / "up").symlink_to("../../secret")
    (root / "sys" / "away").symlink_to(str(root.parent / "secret"))
    (root / "sys" / "tree").symlink_to("../..")
    assert source.text(f"{root}/sys/up") is None
    assert source.text(f"{root}/sys/away") is None
    assert source.text(f"{root}/sys/tree/secret") is None


def test_it_follows_relative_links_between_folders(source: Source, root: Path) -> None:
    (root / "sys" / "bus").mkdir()
    (root / "sys" / "bus" / "device").symlink_to("../real")
    assert source.number(f"{root}/sys/bus/device/value") == 7
    assert source.link(f"{root}/sys/bus/device") == "../real"


def test_it_tells_links_that_run_in_a_circle(source: Source, root: Path) -> None:
    (root / "sys" / "a").symlink_to("b")
    (root / "sys" / "b").symlink_to("a")
    assert source.text(f"{root}/sys/a") is None
    assert causes(source) == [("/sys/a", "its links run in a circle")]


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "/".join("a" * 1000)])
def test_it_finds_nothing_under_paths_that_cannot_be(source: Source, root: Path, name: str) -> None:
    path = f"{root}/sys/{name}"
    assert (source.text(path), source.names(path), source.link(path), source.exists(path)) == (
        None,
        [],
        None,
        False,
    )
    assert source.text(path, required=True) is None
    assert causes(source)[0][1] == "it does not exist"


def test_it_says_what_is_missing_only_if_it_has_to_be_there(source: Source, root: Path) -> None:
    assert source.text(f"{root}/sys/nothing") is None
    assert causes(source) == []
    assert source.text(f"{root}/sys/nothing", required=True) is None
    assert causes(source) == [("/sys/nothing", "it does not exist")]


def test_it_does_not_use_a_file_that_is_too_large(source: Source, root: Path) -> None:
    (root / "sys" / "large").write_bytes(b"1" * 1001)
    assert source.data(f"{root}/sys/large", limit=1000) is None
    assert causes(source) == [("/sys/large", "it is larger than 1000 bytes and was not used")]


def test_it_opens_no_pipes_and_folders(source: Source, root: Path) -> None:
    os.mkfifo(root / "sys" / "pipe")
    assert source.text(f"{root}/sys/pipe") is None
    assert source.text(f"{root}/sys/real") is None
    assert {cause for _, cause in causes(source)} == {"it is a folder where a file was expected"}


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "it is empty"),
        (b"many\n", "'many' is not a whole number"),
        (b"99999999999999999999\n", "'99999999999999999999' is too large a number"),
        (b"\xff\xfe\x00", "it holds bytes that are no text"),
    ],
)
def test_it_says_why_a_number_is_none(source: Source, root: Path, content: bytes, cause: str) -> None:
    (root / "sys" / "number").write_bytes(content)
    assert source.number(f"{root}/sys/number") is None
    assert causes(source) == [("/sys/number", cause)]


def test_it_reads_a_mask_where_the_list_was_cut(source: Source, root: Path) -> None:
    (root / "sys" / "map").write_text("ffffffff,00000003\n")
    (root / "sys" / "list").write_text("0-1,32-5\n")
    assert source.mask_or_ids(f"{root}/sys/map", f"{root}/sys/list") == CpuSet.parse("0-1,32-63")
    (root / "sys" / "map").unlink()
    assert source.mask_or_ids(f"{root}/sys/map", f"{root}/sys/list") is None
    assert "runs backwards" in causes(source)[0][1]


def test_it_counts_how_often_and_forgets_what_is_solved(root: Path) -> None:
    files = Files(str(root))
    for _ in range(3):
        files.reader("test").text(f"{root}/sys/late", required=True)
    [problem] = files.problems.listed()
    assert (problem.reader, problem.what, problem.count) == ("test", "/sys/late", 3)
    (root / "sys" / "late").write_text("here\n")
    assert files.reader("test").text(f"{root}/sys/late", required=True) == "here"
    assert files.problems.listed() == ()
    assert files.problems.totals() == {"test": 3}


def test_it_keeps_a_bounded_number_of_problems(root: Path) -> None:
    files = Files(str(root))
    source = files.reader("test")
    for number in range(MAX_PROBLEMS + 50):
        source.fail(f"/file{number}", "broken")
    listed = files.problems.listed()
    assert len(listed) == MAX_PROBLEMS + 1
    assert (listed[-1].what, listed[-1].count) == ("further files", 50)


def test_it_names_a_missing_right_and_the_remedy(root: Path) -> None:
    """As another user than root, who may read everything."""
    secret = root / "sys" / "secret"
    secret.write_text("1\n")
    secret.chmod(0)
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from numaagent.readers.files import Files; os.setuid(65534)\n"
        "files = Files(sys.argv[1]); found = files.reader('test').text(sys.argv[1] + '/sys/secret')\n"
        "print(found, [problem.cause for problem in files.problems.listed()])"
    )
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    for folder in (root.parent, root, root.parent.parent):
        folder.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", code, str(root), str(ROOT)], capture_output=True, text=True)
    assert done.stdout.strip() == (
        "None ['no right to read it: run the exporter as root, or give its user the right']"
    ), done.stderr
