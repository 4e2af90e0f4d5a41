"""What people fill in on the Planner page, and its way into an address and back: a link has everything, nothing is stored."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import yaml
from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.selectors.planning import Question
from monitoring.selectors.planning.question import MOST_REPLICAS, MOST_WEIGHT, POLICIES, SCOPES
from monitoring.sources import manifest as source
from numacore import quantity
from numacore.lint import VOLCANO
from numacore.manifest import DEFAULT_SCHEDULER, POLICY_ANNOTATION

SHORT = 700
"""Characters of a manifest that stand in the address as they are; longer ones are compressed."""
LONGEST_ADDRESS = 7000
"""Of the whole query: servers in front of this one commonly refuse more than 8 KB."""
ROWS = 1
"""Rows of containers that an empty form has."""
MOST_ROWS = 20
KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod")
HUGE = ("hugepages-2Mi", "hugepages-1Gi")
ROLES = (
    ("container", gettext_lazy("container")),
    ("init", gettext_lazy("init container")),
    ("sidecar", gettext_lazy("sidecar")),
)
OWN = ("", gettext_lazy("as the node has it"))


class QuestionForm(forms.Form):
    """On which nodes, and what is imagined."""

    find = forms.CharField(required=False, max_length=253, label=gettext_lazy("Nodes whose name holds"))
    on = forms.ChoiceField(
        required=False,
        choices=[("", gettext_lazy("any")), *((each, each) for each in POLICIES)],
        label=gettext_lazy("Nodes with the policy"),
    )
    policy = forms.ChoiceField(
        required=False,
        choices=[OWN, *((each, each) for each in POLICIES)],
        label=gettext_lazy("What if the policy were"),
    )
    scope = forms.ChoiceField(
        required=False,
        choices=[OWN, *((each, each) for each in SCOPES)],
        label=gettext_lazy("What if the scope were"),
    )
    replicas = forms.IntegerField(
        required=False, min_value=1, max_value=MOST_REPLICAS, label=gettext_lazy("Replicas")
    )
    weight = forms.CharField(
        required=False, max_length=MOST_WEIGHT, label=gettext_lazy("Weight of numa-aware")
    )
    together = forms.BooleanField(required=False, label=gettext_lazy("Workloads together, in order"))

    def question(self) -> Question:
        """What was asked; what is wrong counts as not asked, and the form says so."""
        return Question(
            **{name: value for name, value in self.cleaned_data.items() if value not in ("", None, False)}
        )


class ContainerForm(forms.Form):
    """One container. A row without CPU, memory and huge pages is left out."""

    role = forms.ChoiceField(choices=ROLES, required=False, label=gettext_lazy("Role"))
    cpu = forms.CharField(required=False, max_length=40, label=gettext_lazy("CPUs"))
    memory = forms.CharField(required=False, max_length=40, label=gettext_lazy("Memory"))
    huge2 = forms.CharField(required=False, max_length=40, label=gettext_lazy("Huge pages 2Mi"))
    huge1 = forms.CharField(required=False, max_length=40, label=gettext_lazy("Huge pages 1Gi"))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        for name in ("cpu", "memory", "huge2", "huge1"):
            if text := cleaned.get(name):
                try:
                    quantity.parse(text)
                except quantity.QuantityError:
                    self.add_error(name, ValidationError(_("Write a quantity such as 500m, 4Gi or 2.")))
        return cleaned

    def amounts(self) -> dict[str, str]:
        """Limits by resource."""
        named = {"cpu": "cpu", "memory": "memory", "huge2": HUGE[0], "huge1": HUGE[1]}
        return {
            resource: self.cleaned_data[field]
            for field, resource in named.items()
            if self.cleaned_data.get(field)
        }


class PodForm(forms.Form):
    """A small workload: what its pods ask of the topology manager, who schedules them, how many there are."""

    kind = forms.ChoiceField(
        required=False, choices=[(each, each) for each in KINDS], label=gettext_lazy("Kind")
    )
    name = forms.CharField(required=False, max_length=253, initial="planned", label=gettext_lazy("Name"))
    pod_policy = forms.ChoiceField(
        required=False,
        choices=[("", gettext_lazy("none asked for")), *((each, each) for each in POLICIES)],
        label=gettext_lazy("Policy asked for"),
    )
    scheduler = forms.CharField(
        required=False, max_length=253, initial=VOLCANO[0], label=gettext_lazy("Scheduler")
    )
    count = forms.IntegerField(
        required=False, min_value=1, max_value=MOST_REPLICAS, initial=1, label=gettext_lazy("Replicas")
    )


API_VERSIONS = {"Job": "batch/v1", "Pod": "v1"}
Containers = forms.formset_factory(ContainerForm, extra=ROWS, max_num=MOST_ROWS, absolute_max=MOST_ROWS)


def with_rows(posted: QueryDict, asked: str) -> QueryDict:
    """What was posted with a row of containers more (`more`) or without one (`drop-3`); anything else leaves it as it is."""
    text = str(posted.get("c-TOTAL_FORMS", ""))
    total = min(int(text), MOST_ROWS) if text.isdecimal() and len(text) < 4 else 0
    kept = [number for number in range(total) if asked != f"drop-{number}"]
    changed = posted.copy()
    for name in [each for each in changed if each.startswith("c-")]:
        del changed[name]
    for place, number in enumerate(kept):
        for field in ContainerForm.base_fields:
            if f"c-{number}-{field}" in posted:
                changed[f"c-{place}-{field}"] = str(posted[f"c-{number}-{field}"])
    changed["c-TOTAL_FORMS"] = str(min(MOST_ROWS, max(1, len(kept) + (asked == "more"))))
    changed["c-INITIAL_FORMS"] = "0"
    return changed


def manifest_of(pod: PodForm, containers: Any) -> str:
    """The manifest that the filled form stands for."""
    spec: dict[str, Any] = {"schedulerName": pod.cleaned_data["scheduler"] or DEFAULT_SCHEDULER}
    for number, each in enumerate(containers, start=1):
        amounts = each.amounts()
        if not amounts:
            continue
        role = each.cleaned_data["role"] or "container"
        made: dict[str, Any] = {
            "name": f"{role}-{number}",
            "resources": {"requests": amounts, "limits": dict(amounts)},
        }
        if role == "sidecar":
            made["restartPolicy"] = "Always"
        spec.setdefault("containers" if role == "container" else "initContainers", []).append(made)
    policy = pod.cleaned_data["pod_policy"]
    template = (
        {"metadata": {"annotations": {POLICY_ANNOTATION: policy}}, "spec": spec} if policy else {"spec": spec}
    )
    kind, count = pod.cleaned_data["kind"] or KINDS[0], pod.cleaned_data["count"] or 1
    name = pod.cleaned_data["name"] or "planned"
    document: dict[str, Any] = {"apiVersion": API_VERSIONS.get(kind, "apps/v1"), "kind": kind}
    if kind == "Pod":
        document |= {"metadata": {"name": name, **template.get("metadata", {})}, "spec": spec}
    else:
        counted = {"Job": {"parallelism": count, "completions": count}, "DaemonSet": {}}
        amount = counted.get(kind, {"replicas": count})
        document |= {"metadata": {"name": name}, "spec": {**amount, "template": template}}
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def address(text: str, asked: Mapping[str, Any]) -> str | None:
    """The query that reproduces an answer; None = it is too long for an address."""
    kept = {
        name: "1" if value is True else value
        for name, value in asked.items()
        if value not in ("", None, False)
    }
    held = {"m": text} if len(text) <= SHORT else {"z": packed(text)}
    query = urlencode(held | kept)
    return query if len(query) <= LONGEST_ADDRESS else None


def packed(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode().rstrip("=")


def unpacked(text: str) -> str:
    """The manifest of an address. Raises ValueError for one that was cut off or is no such text."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        reader = zlib.decompressobj()
        plain = reader.decompress(data, 4 * source.MOST_CHARACTERS)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(str(error)) from None
    if not reader.eof:
        raise ValueError("cut off or too large")
    return plain.decode("utf-8")


def text_of(query: QueryDict) -> str:
    """The manifest in an address, empty where there is none. Raises ValueError."""
    if "z" in query:
        return unpacked(str(query["z"]))
    return str(query.get("m", ""))
