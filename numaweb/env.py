"""Typed readers of environment variables, for settings.py only.

Every reader takes the name and a default, and raises `EnvError` with the name, the value's fault and what would
be right. A variable that is set but empty counts as unset, because that is what a chart with an empty value writes.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ImproperlyConfigured

Number = TypeVar("Number", int, float)

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}
SECRET_BYTES = 65536


class EnvError(ImproperlyConfigured):
    """An environment variable that cannot be understood; the message names it, the fault and the remedy."""


class Env:
    """Reads one mapping (os.environ by default, a dict in tests) and remembers the names it was asked for."""

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.source = os.environ if source is None else source
        self.asked: set[str] = set()
        self.secrets: set[str] = set()
        """Of these, those whose values nobody may see."""

    def raw(self, name: str) -> str | None:
        self.asked.add(name)
        value = self.source.get(name, "").strip()
        return value or None

    def flag(self, name: str, default: bool) -> bool:
        value = self.raw(name)
        if value is None:
            return default
        if value.lower() in TRUE | FALSE:
            return value.lower() in TRUE
        raise EnvError(f"{name}={value!r} is not a switch: write 1 or 0 (also true/false, yes/no, on/off).")

    def integer(self, name: str, default: int, *, low: int | None = None, high: int | None = None) -> int:
        value = self.raw(name)
        if value is None:
            return default
        if not re.fullmatch(r"[+-]?[0-9]+", value):
            raise EnvError(f"{name}={value!r} is not a whole number: write digits only, such as {default}.")
        return within(name, int(value), low, high)

    def number(
        self, name: str, default: float, *, low: float | None = None, high: float | None = None
    ) -> float:
        value = self.raw(name)
        if value is None:
            return default
        if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", value):
            raise EnvError(f"{name}={value!r} is not a number: write it in decimals, such as {default}.")
        return within(name, float(value), low, high)

    def text(self, name: str, default: str, *, choices: tuple[str, ...] = ()) -> str:
        value = self.raw(name)
        if value is None:
            return default
        if choices and value not in choices:
            raise EnvError(f"{name}={value!r} is not known: choose one of {', '.join(choices)}.")
        return value

    def items(self, name: str, default: list[str]) -> list[str]:
        """Values separated by commas; blanks around them and empty ones are dropped."""
        value = self.raw(name)
        if value is None:
            return default
        return [part.strip() for part in value.split(",") if part.strip()]

    def url(self, name: str, default: str, *, schemes: tuple[str, ...]) -> str:
        """An address with a host. The value is never repeated in an error: it may hold a password."""
        value = self.secret(name, default)
        if value == default:
            return default
        parts = parse_url(name, value)
        if parts.scheme not in schemes or not (parts.hostname or parts.scheme == "sqlite"):
            raise EnvError(
                f"{name} is not a usable address: it must look like {schemes[0]}://host:port/name."
            )
        return value

    def path(self, name: str, default: Path) -> Path:
        value = self.raw(name)
        if value is None:
            return default
        if not Path(value).is_absolute():
            raise EnvError(f"{name}={value!r} is a relative path: write an absolute one.")
        return Path(value)

    def secret(self, name: str, default: str) -> str:
        """The value of NAME, or the content of the file that NAME_FILE points to; both at once is an error."""
        self.secrets.add(name)
        value, file = self.raw(name), self.raw(f"{name}_FILE")
        if value and file:
            raise EnvError(f"{name} and {name}_FILE are both set: keep one of them.")
        return read_secret(f"{name}_FILE", Path(file)) if file else value or default


def within(name: str, value: Number, low: Number | None, high: Number | None) -> Number:
    if low is not None and value < low:
        raise EnvError(f"{name}={value} is too small: the least is {low}.")
    if high is not None and value > high:
        raise EnvError(f"{name}={value} is too large: the most is {high}.")
    return value


def parse_url(name: str, value: str) -> SplitResult:
    try:
        parts = urlsplit(value)
        _ = parts.port  # urlsplit checks the port only when asked
    except ValueError as error:
        raise EnvError(f"{name} is not a usable address: {error}.") from None
    return parts


def read_secret(name: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            value = file.read(SECRET_BYTES).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise EnvError(f"{name}={path} cannot be read: {reason}.") from None
    if not value:
        raise EnvError(f"{name}={path} is empty: write the secret into it.")
    return value
