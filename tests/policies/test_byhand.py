"""A previewed change to be taken away: the very change that the preview shows, as a script or a playbook, for operators, in the audit log."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from monitoring.models import Cluster
from numacore.change.wish import Wish
from policies.models import AuditEntry
from policies.services.policy import Target
from tests.monitoring.pages import seeds
from tests.policies.test_policy import save
from tests.policies.test_preview import SINGLE, TEXT, told

ADDRESS = "/c/west/policies/cluster/preview/"
SCRIPT = f"{ADDRESS}by-hand.sh?node=server-0"
PLAYBOOK = f"{ADDRESS}by-hand.yml"


@pytest.fixture
def north(db: None) -> Cluster:
    made = seeds.cluster("west", "West")
    seeds.node(made, "server-0", told())
    seeds.unheard(made, "silent-0")
    return made


def told_back(response: Any) -> list[str]:
    """What the page says that one is sent back to."""
    assert response.headers["Location"] == ADDRESS
    return [str(message) for message in get_messages(response.wsgi_request)]


def test_the_script_brings_the_text_of_the_preview(
    as_operator: Client, north: Cluster, tmp_path: Path
) -> None:
    save(north, Target("cluster"), SINGLE)
    response = as_operator.get(SCRIPT)
    assert response.headers["Content-Disposition"] == 'attachment; filename="numaweb-server-0.sh"'
    file = tmp_path / "part.sh"
    file.write_bytes(response.content.partition(b"set -u\n")[0] + b"new_text\n")
    new = subprocess.run(["/bin/sh", str(file)], capture_output=True, check=True, text=True).stdout
    assert new == TEXT.replace("best-effort  #", "single-numa-node  #") + (
        'topologyManagerPolicyOptions:\n  prefer-closest-numa-nodes: "true"\n'
    )
    assert b"#   -topologyManagerPolicy: best-effort  # since May" in response.content


def test_a_playbook_names_the_nodes_that_it_leaves_out(as_operator: Client, north: Cluster) -> None:
    save(north, Target("cluster"), SINGLE)
    lines = as_operator.get(PLAYBOOK).content.decode().splitlines()
    assert lines[0].startswith("# silent-0: ")
    assert [line for line in lines if line.startswith("  hosts:")] == ['  hosts: "server-0"']


def test_it_is_in_the_audit_log(as_operator: Client, north: Cluster) -> None:
    save(north, Target("cluster"), SINGLE)
    as_operator.get(SCRIPT)
    entry = AuditEntry.objects.get(action="change by hand")
    assert (entry.target, entry.after) == (
        "cluster west policy cluster",
        {"version": 1, "nodes": ["server-0"]},
    )


def test_a_node_that_is_as_wanted_has_no_script(as_operator: Client, north: Cluster) -> None:
    save(north, Target("cluster"), Wish(topology_policy="best-effort"))
    assert told_back(as_operator.get(SCRIPT)) == ["There is nothing to change."]
    assert not AuditEntry.objects.filter(action="change by hand").exists()


def test_a_node_of_which_nobody_tells_has_no_script_and_says_why(as_operator: Client, north: Cluster) -> None:
    save(north, Target("cluster"), SINGLE)
    (said,) = told_back(as_operator.get(f"{ADDRESS}by-hand.sh?node=silent-0"))
    assert said.startswith("Nothing current is known of this node.")


@pytest.mark.parametrize("query", ["", "?node=", "?node=other", "?node=../etc"])
def test_a_node_for_which_it_does_not_count_is_not_found(
    as_operator: Client, north: Cluster, query: str
) -> None:
    save(north, Target("cluster"), SINGLE)
    assert as_operator.get(f"{ADDRESS}by-hand.sh{query}").status_code == 404


@pytest.mark.parametrize("address", [SCRIPT, PLAYBOOK])
def test_a_viewer_may_not_take_it(as_viewer: Client, north: Cluster, address: str) -> None:
    save(north, Target("cluster"), SINGLE)
    assert as_viewer.get(address).status_code == 403
