"""The API over a small inventory, and clients with tokens of each scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitoring.api import fleet
from monitoring.hot import stores
from numaweb import tokens
from numaweb.models import ApiToken
from tests.monitoring.api.inventory import Lab

ROOT = "/api/v1/"
LAB = f"{ROOT}clusters/lab/"


@pytest.fixture(autouse=True)
def _own_store() -> Iterator[None]:
    """Live state of one test is not that of the next."""
    stores.store.cache_clear()
    fleet.keeper.cache_clear()
    yield
    stores.store.cache_clear()


@pytest.fixture
def lab(db: None) -> Lab:
    return Lab(timezone.now())


@pytest.fixture
def bearer(db: None) -> Callable[[User, str], dict[str, Any]]:
    """Headers of a new token of somebody's, with this scope."""

    def make(user: User, scope: str) -> dict[str, Any]:
        token = ApiToken(user=user, name="test", scope=scope)
        secret = tokens.fill(token)
        token.save()
        return {"Authorization": f"Bearer {secret}"}

    return make


Get = Callable[..., Any]


@pytest.fixture
def get(as_viewer: Client) -> Get:
    """What the API answers to a viewer, decoded; the status must be as expected."""

    def ask(path: str, status: int = 200, **headers: str) -> Any:
        response = as_viewer.get(path if path.startswith("/") else LAB + path, headers=headers)
        assert response.status_code == status, response.content
        return msgspec.json.decode(response.content) if response.content else None

    return ask
