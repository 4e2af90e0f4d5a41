"""The Planner page: what it answers, how a link carries a question, and what it says to rubbish."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils.html import escape
from pytest_django.fixtures import Settings

from monitoring.models import Cluster
from monitoring.selectors import planning
from monitoring.views import planner, planner_input
from tests.monitoring import planned

PAGE = "/c/east/planner/"


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    planning.forget()
    yield
    planning.forget()


@pytest.fixture
def cluster(db: None) -> Cluster:
    return planned.cluster()


def ask(client: Client, text: str, **asked: Any) -> str:
    response = client.get(f"{PAGE}?{urlencode({'m': text, **asked})}")
    assert response.status_code == 200
    return response.content.decode()


def headline(page: str) -> str:
    found = re.search(r'class="nw-headline[^>]*>(.*?)</div>', page, re.DOTALL)
    assert found is not None
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", found[1])).strip()


def test_an_empty_page_explains_itself_with_two_examples(cluster: Cluster, as_viewer: Client) -> None:
    page = as_viewer.get(PAGE).content.decode()
    assert "Nothing is changed" in page
    addresses = re.findall(r'nw-plan-example" href="(\?[^"]+)"', page)
    assert len(addresses) == 2
    for address in addresses:
        answer = as_viewer.get(PAGE + address.replace("&amp;", "&")).content.decode()
        assert "nodes would take it" in headline(answer)


def test_the_first_line_answers_the_question(cluster: Cluster, as_viewer: Client) -> None:
    found = headline(ask(as_viewer, planned.job()))
    assert found.startswith("2 of 4 nodes would take it. Best: wide, CPUs 4-5 on NUMA 1.")
    assert "2 cannot be judged." in found


def test_it_shows_why_not_with_numa_node_and_amounts(cluster: Cluster, as_viewer: Client) -> None:
    page = ask(as_viewer, planned.job("5"), node="strict")
    assert "NUMA node 1 comes nearest: 4 of 4 CPUs are free there, 5 are asked for." in page
    assert "TopologyAffinityError: Resources cannot be allocated with Topology locality" in page


def test_it_says_what_would_make_a_refused_pod_fit(cluster: Cluster, as_viewer: Client) -> None:
    page = ask(as_viewer, planned.job("5"), node="strict")
    assert "Container “main” asks for 4 CPUs; 1 more would be refused." in page
    assert "The kubelet is set to topologyManagerPolicy: restricted." in page


def test_it_shows_volcanos_own_words_and_the_disagreement(cluster: Cluster, as_viewer: Client) -> None:
    page = ask(as_viewer, planned.job())
    assert "task topology policy[restricted] is different with node[single-numa-node]" in page
    assert "The kubelet would take it and Volcano never sends it here, because:" in page


def test_the_drawing_has_the_planned_pod(cluster: Cluster, as_viewer: Client) -> None:
    response = as_viewer.get(f"{PAGE}?{urlencode({'m': planned.job()})}")
    drawing = response.context["drawing"]
    assert drawing["planned"] == drawing["containers"][0]["id"]
    assert drawing["containers"][0]["cpus"] == "4-5"


def test_a_form_becomes_a_manifest_and_its_answer_has_an_address(cluster: Cluster, as_viewer: Client) -> None:
    rows = {
        "c-TOTAL_FORMS": "4",
        "c-INITIAL_FORMS": "0",
        "c-0-role": "container",
        "c-0-cpu": "2",
        "c-0-memory": "1Gi",
    }
    sidecar = {"c-1-role": "sidecar", "c-1-cpu": "1", "c-1-memory": "1Gi"}
    pod = {"form": "pod", "pod_policy": "restricted", "scheduler": "volcano", "count": "3"}
    response = as_viewer.post(PAGE, {**rows, **sidecar, **pod, "policy": "best-effort"})
    assert response.status_code == 302
    page = as_viewer.get(response["Location"])
    (group,) = page.context["groups"]
    assert (group.replicas, group.policy, group.scheduler) == (3, "restricted", "volcano")
    assert [each.limits for each in group.pod.in_order()] == [
        {"cpu": "1", "memory": "1Gi"},
        {"cpu": "2", "memory": "1Gi"},
    ]
    assert group.pod.init[0].sidecar
    assert "best-effort" in headline(page.content.decode())


ROWS = {
    "c-TOTAL_FORMS": "2",
    "c-INITIAL_FORMS": "0",
    "c-0-role": "container",
    "c-0-cpu": "2",
    "c-0-memory": "1Gi",
    "c-1-role": "init",
    "c-1-cpu": "4",
}


def cpus(page: Any) -> list[str]:
    return [form["cpu"].value() or "" for form in page.context["containers"]]


def test_containers_are_added_and_removed_and_keep_what_was_typed(
    cluster: Cluster, as_viewer: Client
) -> None:
    more = as_viewer.post(PAGE, {**ROWS, "rows": "more", "name": "web", "manifest": planned.job()})
    assert cpus(more) == ["2", "4", ""]
    assert more.context["pod_form"]["name"].value() == "web"
    assert more.context["manifest"] == planned.job()
    fewer = as_viewer.post(PAGE, {**ROWS, "rows": "drop-0"})
    assert cpus(fewer) == ["4"]
    assert fewer.context["containers"][0]["role"].value() == "init"
    assert cpus(as_viewer.post(PAGE, {**ROWS, "c-TOTAL_FORMS": "1", "rows": "drop-0"})) == [""]


def test_a_script_gets_the_rows_alone(cluster: Cluster, as_viewer: Client) -> None:
    page = as_viewer.post(PAGE, {**ROWS, "rows": "more"}, headers={"HX-Request": "true"})
    text = page.content.decode()
    assert text.strip().startswith('<div id="containers">')
    assert "<form" not in text


@pytest.mark.parametrize(
    "rows", [{"c-TOTAL_FORMS": "10000"}, {"c-TOTAL_FORMS": "x"}, {"c-TOTAL_FORMS": ""}, {"rows": "drop-x"}]
)
def test_rubbish_instead_of_rows_makes_no_more_than_the_most(
    rows: dict[str, str], cluster: Cluster, as_viewer: Client
) -> None:
    page = as_viewer.post(PAGE, {**ROWS, "rows": "more", **rows})
    assert page.status_code == 200
    assert 1 <= len(page.context["containers"]) <= planner_input.MOST_ROWS


@pytest.mark.parametrize(
    ("kind", "replicas"), [("StatefulSet", 3), ("Deployment", 3), ("Job", 3), ("DaemonSet", None), ("Pod", 1)]
)
def test_a_filled_form_is_put_behind_the_manifest(
    kind: str, replicas: int | None, cluster: Cluster, as_viewer: Client
) -> None:
    filled = {"form": "append", "kind": kind, "name": "db", "count": "3", "pod_policy": "restricted"}
    response = as_viewer.post(PAGE, {**ROWS, **filled, "manifest": planned.job(), "together": "on"})
    assert response.status_code == 302
    page = as_viewer.get(response["Location"])
    first, second = page.context["groups"]
    assert (first.title, second.title) == ("Job/train/worker", f"{kind}/db")
    assert (second.replicas, second.policy) == (replicas, "restricted")
    assert page.context["question_form"].cleaned_data["together"]


def test_workloads_stand_on_a_node_in_the_manifests_order(cluster: Cluster, as_viewer: Client) -> None:
    text = f"{planned.job('4')}---\n{planned.job('2', replicas=2)}"
    alone = ask(as_viewer, text, group=1, find="wide")
    assert headline(alone).startswith("1 of 1 nodes would take it.")
    page = ask(as_viewer, text, group=1, find="wide", together="1")
    assert headline(page).startswith("None of 1 nodes") or headline(page).startswith("No node would take it")
    assert "In this order on this node" in page
    assert "1 of 1 pod · the first on CPUs 4-7" in page
    assert "each node as if the pods of Job/train/worker stood on it already" in page


def test_it_tells_volcanos_steps_with_its_own_words(cluster: Cluster, as_viewer: Client) -> None:
    page = ask(as_viewer, planned.job("5"), node="wide", weight="ten")
    assert "5 CPUs. Volcano takes none for reserved; free then: 6 (NUMA 0: 2, NUMA 1: 4)." in page
    assert "no whole number; Volcano says nothing and takes 1." in page
    refused = ask(as_viewer, planned.job(), node="strict")
    assert "the pod asks for the policy restricted and the node has single-numa-node" in refused


def test_a_wrong_amount_in_the_form_is_named_there(cluster: Cluster, as_viewer: Client) -> None:
    rows = {"form": "pod", "c-TOTAL_FORMS": "1", "c-INITIAL_FORMS": "0", "c-0-cpu": "two"}
    page = as_viewer.post(PAGE, rows)
    assert page.status_code == 200
    assert "Write a quantity such as 500m, 4Gi or 2." in page.content.decode()


def test_a_long_manifest_is_compressed_in_its_address(cluster: Cluster, as_viewer: Client) -> None:
    text = planned.job() + "---\n" + "\n".join(f"# line {number}" for number in range(400))
    response = as_viewer.post(PAGE, {"form": "manifest", "manifest": text, "find": "wide"})
    assert len(response["Location"]) < 3000
    page = as_viewer.get(response["Location"])
    assert page.context["manifest"] == text
    assert headline(page.content.decode()).startswith("1 of 1 nodes would take it.")


def test_what_is_too_long_for_an_address_is_answered_at_once(
    cluster: Cluster, as_viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_input, "LONGEST_ADDRESS", 50)
    page = as_viewer.post(PAGE, {"form": "manifest", "manifest": planned.job()}).content.decode()
    assert "nodes would take it" in headline(page)
    assert "This question is too long for a link." in page


@pytest.mark.parametrize(
    "broken", ["not base64!", "eJwrzs9NBQAGKgJB"[:9], planner_input.packed("x" * 100)[:-5], "%ff"]
)
def test_a_link_that_was_cut_off_is_said_to_be(broken: str, cluster: Cluster, as_viewer: Client) -> None:
    page = as_viewer.get(f"{PAGE}?{urlencode({'z': broken})}")
    assert page.status_code == 200
    assert headline(page.content.decode()).startswith("This link is cut off.")


def test_every_fault_of_a_manifest_is_named(cluster: Cluster, as_viewer: Client) -> None:
    text = "kind: Pod\nspec: {containers: [{name: a, resources: {limits: {cpu: two}}}]}\n---\nkind: Job\nspec: {template: {spec: {}}}"
    page = ask(as_viewer, text)
    assert headline(page).startswith("The manifest cannot be read.")
    assert "document 1: spec.containers[0].resources.limits.cpu" in page
    assert "document 2: spec.template.spec.containers" in page
    assert escape(text) in page


@pytest.mark.parametrize(
    "asked", [{"replicas": "0"}, {"replicas": "many"}, {"policy": "strict"}, {"find": "x" * 300}]
)
def test_a_wrong_value_is_named_by_the_form(
    asked: dict[str, str], cluster: Cluster, as_viewer: Client
) -> None:
    page = ask(as_viewer, planned.job(), **asked)
    assert headline(page).startswith("Some values are not acceptable.")
    assert 'aria-invalid="true"' in page


@pytest.mark.parametrize(
    "asked", [{"group": "99"}, {"group": "x"}, {"page": "zz"}, {"show": "all"}, {"node": "nowhere"}]
)
def test_other_rubbish_in_the_address_is_left_alone(
    asked: dict[str, str], cluster: Cluster, as_viewer: Client
) -> None:
    assert "nodes would take it" in headline(ask(as_viewer, planned.job(), **asked))


def test_no_node_is_chosen(cluster: Cluster, as_viewer: Client) -> None:
    assert headline(ask(as_viewer, planned.job(), find="nowhere")).startswith("No node is chosen.")


def test_the_linter_speaks_on_the_same_page(cluster: Cluster, as_viewer: Client) -> None:
    page = ask(as_viewer, planned.job(policy="Restricted"))
    assert "The policy “Restricted” is written otherwise than anybody reads it; no node will match." in page
    assert "Write restricted." in page


def test_each_workload_of_a_manifest_has_its_tab(cluster: Cluster, as_viewer: Client) -> None:
    page = ask(
        as_viewer,
        f"{planned.job()}---\nkind: Pod\nmetadata: {{name: two}}\nspec: {{containers: [{{name: a}}]}}",
        group=1,
    )
    assert "Job/train/worker" in page
    assert "shared CPUs" in headline(page)


def test_while_nodes_are_judged_it_shows_how_far_it_is(
    cluster: Cluster, as_viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "SECONDS", -1.0)
    address = f"{PAGE}?{urlencode({'m': planned.job()})}"
    page = as_viewer.get(address).content.decode()
    assert "2 of 4 nodes are judged" in page
    again = as_viewer.get(address, headers={"HX-Request": "true"})
    assert "<html" not in again.content.decode()
    last = as_viewer.get(address, headers={"HX-Request": "true"})
    assert last["HX-Refresh"] == "true"


def test_ten_thousand_replicas_are_answered(cluster: Cluster, as_viewer: Client) -> None:
    assert "There is room for 4 of 10000 pods." in headline(ask(as_viewer, planned.job(), replicas=10_000))


def test_it_speaks_chinese(cluster: Cluster, as_viewer: Client, settings: Settings) -> None:
    as_viewer.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    assert headline(ask(as_viewer, planned.job())).startswith("4 个节点中有 2 个会接纳它。")


def test_only_who_may_read_may_ask(cluster: Cluster, as_stranger: Client, client: Client) -> None:
    assert as_stranger.get(PAGE).status_code == 403
    assert as_stranger.post(PAGE, {"manifest": planned.job()}).status_code == 403
    assert client.get(PAGE).status_code == 302


def test_nothing_is_changed(cluster: Cluster, as_viewer: Client) -> None:
    before = list(cluster.nodes.values())
    ask(as_viewer, planned.job())
    assert list(cluster.nodes.values()) == before
