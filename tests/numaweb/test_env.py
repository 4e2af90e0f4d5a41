"""Environment variables: typed, loud, and never repeating a secret."""

from pathlib import Path

import pytest

from numaweb.env import Env, EnvError


def test_it_uses_the_default_for_an_absent_or_empty_variable() -> None:
    env = Env({"EMPTY": "  "})
    assert env.flag("ABSENT", True) is True
    assert env.integer("EMPTY", 7) == 7
    assert env.number("EMPTY", 0.5) == 0.5
    assert env.items("EMPTY", ["a"]) == ["a"]
    assert env.secret("EMPTY", "none") == "none"


@pytest.mark.parametrize("value", ["1", "true", "Yes", "ON"])
def test_it_reads_a_switch_that_is_on(value: str) -> None:
    assert Env({"X": value}).flag("X", False) is True


@pytest.mark.parametrize("value", ["0", "False", "no", "off"])
def test_it_reads_a_switch_that_is_off(value: str) -> None:
    assert Env({"X": value}).flag("X", True) is False


@pytest.mark.parametrize(
    ("value", "read", "said"),
    [
        ("maybe", lambda env: env.flag("X", False), "X='maybe' is not a switch"),
        ("1.5", lambda env: env.integer("X", 1), "X='1.5' is not a whole number"),
        ("1_000", lambda env: env.integer("X", 1), "is not a whole number"),
        ("0", lambda env: env.integer("X", 1, low=1), "X=0 is too small: the least is 1"),
        ("9", lambda env: env.integer("X", 1, high=8), "X=9 is too large: the most is 8"),
        ("nan", lambda env: env.number("X", 1.0), "is not a number"),
        ("1e400", lambda env: env.number("X", 1.0), "is not a number"),
        ("red", lambda env: env.text("X", "a", choices=("a", "b")), "choose one of a, b"),
        ("var/state", lambda env: env.path("X", Path("/")), "relative path"),
    ],
)
def test_it_says_what_is_wrong_and_what_is_right(value: str, read: object, said: str) -> None:
    with pytest.raises(EnvError, match="X") as caught:
        read(Env({"X": value}))  # type: ignore[operator]
    assert said in str(caught.value)


def test_it_reads_a_list_without_blanks() -> None:
    assert Env({"X": " a, b,,c "}).items("X", []) == ["a", "b", "c"]


@pytest.mark.parametrize("value", ["mysql://u:hunter2@h/n", "postgresql://u:hunter2@h:99999/n", "hunter2"])
def test_it_never_repeats_an_address_with_a_password(value: str) -> None:
    with pytest.raises(EnvError, match="not a usable address") as caught:
        Env({"X": value}).url("X", "", schemes=("postgresql",))
    assert "hunter2" not in str(caught.value)


def test_it_accepts_an_address_of_a_known_scheme() -> None:
    address = "redis://:secret@cache.example:6380/3"
    assert Env({"X": address}).url("X", "", schemes=("redis", "rediss")) == address


def test_it_reads_a_secret_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from the file\n")
    assert Env({"X_FILE": str(tmp_path / "key")}).secret("X", "") == "from the file"


def test_it_reads_an_address_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("redis://h:1/0\n")
    assert Env({"X_FILE": str(tmp_path / "url")}).url("X", "", schemes=("redis",)) == "redis://h:1/0"


def test_it_refuses_a_secret_given_twice(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="X and X_FILE are both set"):
        Env({"X": "a", "X_FILE": str(tmp_path)}).secret("X", "")


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "is empty"), (b"\xff\xfe", "not text"), (None, "No such file")]
)
def test_it_refuses_a_secret_file_that_holds_none(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(EnvError, match=said):
        Env({"X_FILE": str(file)}).secret("X", "")
