"""Sets of ids: the kernel's formats read and written, and the algebra of sets."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore.cpuset import EMPTY, MAX_ID, MAX_PARTS, CpuSet, CpuSetError, union

ids = st.frozensets(st.one_of(st.integers(0, 300), st.integers(0, MAX_ID)), max_size=60)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("", []),
        ("\n", []),
        ("0\n", [0]),
        ("0-3,8", [0, 1, 2, 3, 8]),
        ("8,0-3", [0, 1, 2, 3, 8]),
        ("5-5", [5]),
        ("0-2,1-4", [0, 1, 2, 3, 4]),
        ("0, 2", [0, 2]),
        ("1024-1026", [1024, 1025, 1026]),
        ("65535", [65535]),
        ("0-15:2/4", [0, 1, 4, 5, 8, 9, 12, 13]),
        ("3-20:2/5", [3, 4, 8, 9, 13, 14, 18, 19]),
        ("0-10:1/3,2", [0, 2, 3, 6, 9]),
        ("0-3:9/9", [0, 1, 2, 3]),
        ("0-0:1/2", [0]),
    ],
)
def test_it_reads_the_list_format(text: str, members: list[int]) -> None:
    assert list(CpuSet.parse(text)) == members


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([], ""),
        ([7], "7"),
        ([0, 1, 2, 3, 8], "0-3,8"),
        ([0, 2, 4], "0,2,4"),
        ([4, 3, 1, 3], "1,3-4"),
        ([1023, 1024, 65535], "1023-1024,65535"),
    ],
)
def test_it_prints_the_list_format(members: list[int], text: str) -> None:
    assert str(CpuSet(members)) == text
    assert repr(CpuSet(members)) == f"CpuSet({text!r})"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a", "'a' is not an id or a range of ids"),
        ("0-", "'0-' is not an id"),
        ("-1", "'-1' is not an id"),
        ("1,,2", "empty part in the list '1,,2'"),
        (",", "empty part"),
        ("0-3,", "empty part"),
        ("3-0", "the range '3-0' runs backwards"),
        ("0-4294967295", "is not an id"),
        ("0-65536", "has an id outside 0-65535"),
        ("+1", "is not an id"),
        ("1_0", "is not an id"),
        ("0x1", "is not an id"),
        ("٣", "is not an id"),  # a digit, in another script
        ("0-3:", "is not an id"),
        ("0-3:2", "the stride of '0-3:2'"),
        ("0-3:0/4", "0 < USED <= GROUP"),
        ("0-3:5/4", "0 < USED <= GROUP"),
        ("0-3:2/0", "0 < USED <= GROUP"),
        ("0-3:a/4", "is not an id"),
        ("all", "is not an id"),
        ("0 1", "is not an id"),
        ("1\x00", "is not an id"),
        ("9" * 5000, "is not an id"),
    ],
)
def test_it_refuses_other_texts_and_names_the_part(text: str, cause: str) -> None:
    with pytest.raises(CpuSetError) as raised:
        CpuSet.parse(text)
    assert cause in str(raised.value)
    assert len(str(raised.value)) < 150


def test_it_refuses_an_endless_list_at_once() -> None:
    with pytest.raises(CpuSetError, match=f"more than {MAX_PARTS} parts"):
        CpuSet.parse(",".join(["0-65535:1/2"] * (MAX_PARTS + 1)))


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("0", []),
        ("ff", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("00000000,00000003\n", [0, 1]),
        ("1,00000000", [32]),
        ("80000000,00000000,00000001", [0, 95]),
        ("FF", [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_it_reads_the_mask_format(text: str, members: list[int]) -> None:
    assert list(CpuSet.parse_mask(text)) == members


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "is not a 32-bit hexadecimal word"),
        ("xyz", "'xyz' is not a 32-bit hexadecimal word"),
        ("0x1", "is not a 32-bit"),
        ("-1", "is not a 32-bit"),
        ("1_0", "is not a 32-bit"),
        ("100000000", "is not a 32-bit"),
        ("1,", "'' is not a 32-bit"),
        (",".join(["0"] * 2049), "more than 2048 words"),
    ],
)
def test_it_refuses_other_masks(text: str, cause: str) -> None:
    with pytest.raises(CpuSetError) as raised:
        CpuSet.parse_mask(text)
    assert cause in str(raised.value)


@pytest.mark.parametrize("member", [-1, 65536, 10**12])
def test_it_refuses_ids_out_of_bounds(member: int) -> None:
    with pytest.raises(CpuSetError, match="outside 0-65535"):
        CpuSet([member])


@given(ids)
def test_it_reads_what_it_prints(members: frozenset[int]) -> None:
    assert frozenset(CpuSet.parse(str(CpuSet(members)))) == members


@given(ids, ids)
def test_it_is_a_set(left: frozenset[int], right: frozenset[int]) -> None:
    a, b = CpuSet(left), CpuSet(right)
    assert set(a | b) == left | right
    assert set(a & b) == left & right
    assert set(a - b) == left - right
    assert (a <= b) == (left <= right)
    assert (a == b) == (left == right)
    assert len(a) == len(left)
    assert bool(a) == bool(left)
    assert list(a) == sorted(left)
    assert union([a, b]) == a | b
    assert (hash(a) == hash(b)) or left != right


@given(ids, st.integers(-5, 400))
def test_it_knows_its_members(members: frozenset[int], candidate: int) -> None:
    assert (candidate in CpuSet(members)) == (candidate in members)


@given(ids)
def test_its_runs_cover_it_without_touching(members: frozenset[int]) -> None:
    runs = list(CpuSet(members).ranges())
    assert {i for first, last in runs for i in range(first, last + 1)} == members
    assert all(left[1] + 1 < right[0] for left, right in pairwise(runs))


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(1, 40), st.integers(0, 40))
def test_it_reads_any_stride(first: int, length: int, used: int, more: int) -> None:
    group = used + more
    read = CpuSet.parse(f"{first}-{first + length}:{used}/{group}")
    assert list(read) == [i for i in range(first, first + length + 1) if (i - first) % group < used]


@given(ids)
def test_it_reads_the_kernels_mask_of_it(members: frozenset[int]) -> None:
    bits = sum(1 << i for i in members)
    words = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(bits.bit_length(), 1), 32)]
    assert frozenset(CpuSet.parse_mask(",".join(reversed(words)))) == members


@given(st.text())
def test_it_answers_hostile_texts_with_a_set_or_its_own_error(text: str) -> None:
    for read in (CpuSet.parse, CpuSet.parse_mask):
        with suppress(CpuSetError):
            assert all(0 <= member <= MAX_ID for member in read(text))


@pytest.mark.parametrize("other", ["0", 0, None, {0}])
def test_it_holds_and_equals_nothing_of_another_kind(other: object) -> None:
    assert CpuSet([0]) != other
    assert "0" not in CpuSet([0])
    assert not EMPTY
