"""Who wants something, and from where: what every service of this room tells the audit log."""

from typing import NamedTuple


class Who(NamedTuple):
    """A user's name and address."""

    name: str
    address: str
