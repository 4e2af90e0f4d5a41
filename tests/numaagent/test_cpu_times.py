"""Time of each CPU from `/proc/stat`, whatever its age or state."""

from __future__ import annotations

from pathlib import Path

import pytest

from numaagent import config
from numaagent.readers import cputimes
from numaagent.readers.files import Files
from numacore.usage import CpuTimes


@pytest.fixture
def reader(tmp_path: Path) -> cputimes.Reader:
    (tmp_path / "proc").mkdir()
    return cputimes.Reader(Files(str(tmp_path)), config.load({}, root=str(tmp_path)).roots)


def times(reader: cputimes.Reader, text: str) -> CpuTimes | None:
    Path(reader._path).write_text(text)
    found = reader.times(reader.rows())
    reader.close()
    return found


def causes(reader: cputimes.Reader) -> list[str]:
    return [problem.cause for problem in reader._files.problems.listed()]


def test_it_sums_what_is_busy_and_what_is_idle(reader: cputimes.Reader) -> None:
    found = times(
        reader, "cpu  9 9 9 9\ncpu0 1 2 4 100 200 8 16 32 64 128\ncpu7 1 1 1 1 1 1 1 1 0 0\nintr 5 0 0\n"
    )
    assert found is not None
    assert str(found.cpus) == "0,7"
    # Guests (the last two columns) are in user and nice already.
    assert (found.busy, found.idle) == ((1 + 2 + 4 + 8 + 16 + 32, 6), (300, 2))


def test_it_reads_kernels_that_count_fewer_modes(reader: cputimes.Reader) -> None:
    found = times(reader, "cpu  1 2 3 4\ncpu0 1 2 3 4\n")
    assert found is not None
    assert (found.busy, found.idle) == ((6,), (4,))


def test_it_follows_cpus_that_go_and_come(reader: cputimes.Reader) -> None:
    both = "cpu  2 0 0 2 0 0 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\ncpu1 1 0 0 1 0 0 0 0 0 0\n"
    one = both.replace("cpu1 1 0 0 1 0 0 0 0 0 0\n", "")
    assert [str(found.cpus) for text in (both, one, both) if (found := times(reader, text))] == [
        "0-1",
        "0",
        "0-1",
    ]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("intr 1 2 3\n", "it lists no CPU"),
        ("cpu  1 1 1 1\ncpu0\n", "its lines of CPUs are not numbers"),
        ("cpu  1 1 1 1\ncpu0 one two\n", "its lines of CPUs are not numbers"),
        ("cpu  1 1 1 1\ncpu0 -1 2 3 4\n", "its lines of CPUs are not numbers"),
        ("cpu  1 1 1 1\ncpu0 1 2 3 99999999999999999999\n", "its lines of CPUs are not numbers"),
        ("cpu  1 1 1 1\ncpu1 1 1 1 1\ncpu0 1 1 1 1\n", "its CPUs are not in ascending order, or too many"),
        ("cpu  1 1 1 1\ncpu70000 1 1 1 1\n", "its CPUs are not in ascending order, or too many"),
    ],
)
def test_it_says_what_is_wrong(reader: cputimes.Reader, text: str, cause: str) -> None:
    assert times(reader, text) is None
    assert causes(reader) == [cause]


def test_it_says_that_there_is_no_file_and_recovers(reader: cputimes.Reader) -> None:
    assert reader.rows() == []
    assert causes(reader) == ["it does not exist"]
    assert times(reader, "cpu  1 1 1 1\ncpu0 1 1 1 1\n") is not None
    assert causes(reader) == []
