"""The order in which Go's `sort.Slice` leaves a list whose comparison contradicts itself.

Volcano compares with chains of "or", under which two items may each come before the other. The result then depends on the steps of the
sort, so they are followed here: Go 1.19 and newer, sort/zsortfunc.go (pattern-defeating quicksort, insertion sort up to 12 items).
"""

from collections.abc import Callable

Less = Callable[[int, int], bool]

_INSERTION = 12
_NINTHER = 50
_MOST_SWAPS = 12
_SHIFTS = 5
_MASK = (1 << 64) - 1


def slice_order(items: list[int], less: Less) -> list[int]:
    """`items` in the order of `sort.Slice`; `less(a, b)` = a comes before b, and may contradict itself."""
    data = list(items)
    _Sort(data, less).quick(0, len(data), len(data).bit_length())
    return data


class _Sort:
    """One run over `data`, whose positions are compared by `less`."""

    def __init__(self, data: list[int], less: Less) -> None:
        self.data = data
        self._less = less

    def less(self, a: int, b: int) -> bool:
        return self._less(self.data[a], self.data[b])

    def swap(self, a: int, b: int) -> None:
        self.data[a], self.data[b] = self.data[b], self.data[a]

    def quick(self, low: int, high: int, patience: int) -> None:
        """`pdqsort_func`: `patience` is how many unbalanced partitions it bears before it falls back to a heap."""
        balanced = partitioned = True
        while (length := high - low) > _INSERTION:
            if patience == 0:
                self.heap(low, high)
                return
            if not balanced:
                self.scatter(low, high)
                patience -= 1
            pivot, rising = self.pivot(low, high)
            if rising is False:
                self.data[low:high] = self.data[low:high][::-1]
                pivot, rising = high - 1 - (pivot - low), True
            if balanced and partitioned and rising and self.nearly_sorted(low, high):
                return
            if low > 0 and not self.less(low - 1, pivot):
                low = self.skip_equal(low, high, pivot)
                continue
            middle, partitioned = self.partition(low, high, pivot)
            balanced = min(middle - low, high - middle) >= length // 8
            if middle - low < high - middle:
                self.quick(low, middle, patience)
                low = middle + 1
            else:
                self.quick(middle + 1, high, patience)
                high = middle
        self.insertion(low, high)

    def insertion(self, low: int, high: int) -> None:
        for place in range(low + 1, high):
            self.sink(place, low)

    def sink(self, place: int, low: int) -> None:
        """Moves the item towards `low` past everything that it comes before."""
        while place > low and self.less(place, place - 1):
            self.swap(place, place - 1)
            place -= 1

    def heap(self, low: int, high: int) -> None:
        length = high - low
        for root in range((length - 1) // 2, -1, -1):
            self.sift(root, length, low)
        for end in range(length - 1, -1, -1):
            self.swap(low, low + end)
            self.sift(0, end, low)

    def sift(self, root: int, end: int, first: int) -> None:
        while (child := 2 * root + 1) < end:
            if child + 1 < end and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child

    def scatter(self, low: int, high: int) -> None:
        """`breakPatterns_func`: three swaps chosen by an xorshift generator that starts from the length."""
        length = high - low
        state = length
        middle = low + length // 4 * 2
        for place in range(middle - 1, middle + 2):
            state = _xorshift(state)
            other = state & ((1 << length.bit_length()) - 1)
            self.swap(place, low + (other - length if other >= length else other))

    def pivot(self, low: int, high: int) -> tuple[int, bool | None]:
        """Where the pivot is, and whether the samples rise (True), fall (False) or neither (None)."""
        length = high - low
        quarters = [low + length // 4 * part for part in (1, 2, 3)]
        swaps = 0
        if length >= _NINTHER:
            for index, place in enumerate(quarters):
                quarters[index], more = self.median(place - 1, place, place + 1)
                swaps += more
        middle, more = self.median(*quarters)
        swaps += more
        return middle, {0: True, _MOST_SWAPS: False}.get(swaps)

    def median(self, a: int, b: int, c: int) -> tuple[int, int]:
        """The middle one of three positions, and how many of them were out of order."""
        swaps = 0
        if self.less(b, a):
            a, b, swaps = b, a, swaps + 1
        if self.less(c, b):
            b, c, swaps = c, b, swaps + 1
        if self.less(b, a):
            a, b, swaps = b, a, swaps + 1
        return b, swaps

    def nearly_sorted(self, low: int, high: int) -> bool:
        """`partialInsertionSort_func`: mends a few pairs; whether everything is sorted then."""
        place = low + 1
        for _ in range(_SHIFTS):
            while place < high and not self.less(place, place - 1):
                place += 1
            if place == high:
                return True
            if high - low < _NINTHER:
                return False
            self.swap(place, place - 1)
            if place - low >= 2:
                self.sink(place - 1, 0)
            if high - place >= 2:
                self.rise(place + 1, high)
        return False

    def rise(self, place: int, high: int) -> None:
        while place < high and self.less(place, place - 1):
            self.swap(place, place - 1)
            place += 1

    def partition(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """Where the pivot comes to rest, and whether nothing had to be moved."""
        self.swap(low, pivot)
        left, right = self.close_in(low + 1, high - 1, low)
        done = left > right
        while left <= right:
            self.swap(left, right)
            left, right = self.close_in(left + 1, right - 1, low)
        self.swap(right, low)
        return right, done

    def close_in(self, left: int, right: int, pivot: int) -> tuple[int, int]:
        while left <= right and self.less(left, pivot):
            left += 1
        while left <= right and not self.less(right, pivot):
            right -= 1
        return left, right

    def skip_equal(self, low: int, high: int, pivot: int) -> int:
        """`partitionEqual_func`: where the items that come after the pivot begin."""
        self.swap(low, pivot)
        left, right = low + 1, high - 1
        while True:
            while left <= right and not self.less(low, left):
                left += 1
            while left <= right and self.less(low, right):
                right -= 1
            if left > right:
                return left
            self.swap(left, right)
            left, right = left + 1, right - 1


def _xorshift(state: int) -> int:
    state ^= state << 13 & _MASK
    state ^= state >> 7
    return (state ^ state << 17) & _MASK
