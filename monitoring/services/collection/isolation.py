"""One surprising answer must cost the others nothing: work on many that breaks is done again on fewer of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from django.db import DatabaseError, DataError

from monitoring.hot import StoreError
from monitoring.services.leases import LeaseLostError

M = TypeVar("M")


async def apart(
    work: Callable[[Sequence[M]], Awaitable[None]],
    members: Sequence[M],
    broken: Callable[[M, Exception], None],
) -> None:
    """Does `work` on all members; where it breaks, on either half, down to the single ones that it breaks on, which
    `broken` is told of. `work` must bear to be done twice. Raises what is no member's fault."""
    if not members:
        return
    try:
        await work(members)
    except Exception as error:
        if not is_of_a_member(error):
            raise
        if len(members) == 1:
            broken(members[0], error)
            return
        middle = len(members) // 2
        await apart(work, members[:middle], broken)
        await apart(work, members[middle:], broken)


def is_of_a_member(error: Exception) -> bool:
    """Whether something broke on what it was given, and not on a database, store or lease that is away."""
    return isinstance(error, DataError) or not isinstance(error, (DatabaseError, StoreError, LeaseLostError))
