"""The OpenAPI document and the running API agree: generated requests, right and wrong ones, with a fixed seed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core import signals
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django.fixtures import Settings
from schemathesis import GenerationMode, checks

from policies.models import Cleanup, Policy, Pool
from tests.monitoring.api.conftest import ROOT
from tests.monitoring.api.inventory import Lab
from tests.policies import rollouts

EXAMPLES = 15
checks.load_all_checks()
CHECKED = [
    checks.CHECKS.get_one(name)
    for name in (
        *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
        *("response_schema_conformance", "response_headers_conformance"),
    )
]


application = cache(get_wsgi_application)


@pytest.fixture
def _one_connection() -> Iterator[None]:
    """A server closes its connections between requests; here one transaction lasts over all of them."""
    around = (signals.request_started, signals.request_finished)
    for signal in around:
        signal.disconnect(close_old_connections)
    yield
    for signal in around:
        signal.connect(close_old_connections)


@pytest.fixture
def signed(
    administrator: User, bearer: Callable[[User, str], dict[str, Any]], settings: Settings
) -> dict[str, Any]:
    """An administrator's token, without a rate."""
    rates = {"DEFAULT_THROTTLE_RATES": {"caller": "100000/min"}}
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, **rates}
    return bearer(administrator, "admin")


@pytest.fixture
def api(lab: Lab, signed: dict[str, Any], _one_connection: None) -> Any:
    return schemathesis.openapi.from_wsgi(f"{ROOT}schema/?format=json", application(), headers=signed)


def operations() -> list[tuple[str, str]]:
    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods]


def wanted(lab: Lab) -> dict[str, str]:
    """A pool, a policy and a rollout that are there, as parts of addresses."""
    changed = {"changed": timezone.now(), "changed_by": "ada"}
    pool = Pool.objects.create(cluster=lab.cluster, name="gold", selector="tier=gold", **changed)
    policy = Policy.objects.create(
        cluster=lab.cluster, level="cluster", wish={"topology_policy": "none"}, on=True, **changed
    )
    rollout = rollouts.rollout(lab.cluster, rollouts.State.STOPPED)
    rollout.nodes.filter(name="node-0").update(name="worker-1")
    return {"pool": pool.name, "policy": str(policy.pk), "rollout": str(rollout.pk)}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("path", "method"), operations())
def test_it_keeps_to_its_document(api: Any, signed: dict[str, Any], lab: Lab, path: str, method: str) -> None:
    operation, seen = api[path][method], Counter[int]()
    right, wrong = (
        operation.as_strategy(generation_mode=mode)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    )
    known = {
        "cluster": "lab",
        "node": "worker-1",
        "topology": lab.node.topology_id,
        "endpoint": str(lab.endpoint.pk),
        "cleanup": str(Cleanup.objects.create(cluster=lab.cluster, made=timezone.now(), made_by="otto").pk),
        **wanted(lab),
    }

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(right, wrong), there=st.booleans())
    def try_out(case: Any, there: bool) -> None:
        if there and method != "delete":
            case.path_parameters.update(
                {name: value for name, value in known.items() if name in case.path_parameters}
            )
        seen[case.call_and_validate(headers=signed, checks=CHECKED).status_code] += 1

    try_out()
    assert not {401, 403, 429} & set(seen)
    if method == "get":
        # What is tried hangs on which modules are loaded (Hypothesis takes constants from them); this is tried always.
        there = {name: value for name, value in known.items() if f"{{{name}}}" in path}
        plain = operation.Case(path_parameters=there)
        seen[plain.call_and_validate(headers=signed, checks=CHECKED).status_code] += 1
        assert seen[200], seen


def test_the_page_of_the_document_runs_under_the_content_policy(as_viewer: Client, db: None) -> None:
    page = as_viewer.get(f"{ROOT}docs/").content.decode()
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert "//" not in "".join(re.findall(r'(?:src|href)="([^"]+)"', page))
    script = as_viewer.get(f"{ROOT}docs/?script=")
    assert script.headers["Content-Type"].startswith("application/javascript")
    assert f"{ROOT}schema/" in script.content.decode()


def test_the_document_names_units_and_ways_to_sign_in(as_viewer: Client, db: None) -> None:
    found = as_viewer.get(f"{ROOT}schema/?format=json").json()
    assert found["openapi"].startswith("3.1")
    assert set(found["components"]["securitySchemes"]) == {"token", "session"}
    row = found["components"]["schemas"]["NodeRow"]["properties"]
    assert {"description": "bytes", "type": "integer"} in row["memory_total"]["anyOf"]
    assert {"description": "share, 0 to 1", "type": "number"} in row["busy"]["anyOf"]
    post = found["paths"][f"{ROOT}clusters/"]["post"]
    assert post["summary"] == "Adds a cluster (administrators)"
    assert {"201", "400", "403", "409"} <= post["responses"].keys()


def test_rows_of_which_fields_may_be_chosen_require_none(as_viewer: Client, db: None) -> None:
    document = as_viewer.get(f"{ROOT}schema/?format=json").json()
    schemas = document["components"]["schemas"]
    choosing = [
        each["get"]
        for each in document["paths"].values()
        if "get" in each and any(one["name"] == "fields" for one in each["get"].get("parameters", []))
    ]
    assert len(choosing) >= 6
    for operation in choosing:
        page = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
        row = schemas[page]["properties"]["results"]["items"]["$ref"].split("/")[-1]
        assert "required" not in schemas[row], row
