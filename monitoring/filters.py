"""Filters of the lists of nodes, containers, endpoints and events, the same for pages and the REST API.

A name that is given several times means any of its values; names together mean all of them. `unknown` stands for what
nobody knows. The number and length of values are bounded, and every refusal names the parameter.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any

import django_filters as df
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Exists, Model, Q, QuerySet
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext_lazy as _
from django_filters.fields import IsoDateTimeField

from monitoring import selectors
from monitoring.figures import placing
from monitoring.models import ClusterEvent, Container, Endpoint, Failure, Node, NodeEvent, Pod
from monitoring.selectors.searching import CONTAINER_NAMES, POD_NAMES, container_id

MOST_VALUES = 100
"""Values of one parameter."""
LONGEST = 253
"""Characters of one value: no name in Kubernetes is longer."""
UNKNOWN = "unknown"
PRESENCE = [("true", _("yes")), ("false", _("no")), (UNKNOWN, _("unknown"))]
CROSSES = [("cpu", _("CPUs")), ("memory", _("memory")), ("device", _("devices"))]


class SeveralInput(forms.TextInput):
    """A parameter that may be given several times."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:  # noqa: ARG002 - Django names it
        given = data.getlist(name) if isinstance(data, MultiValueDict) else data.get(name) or []
        return [given] if isinstance(given, str) else [text for text in given if text != ""]

    def format_value(self, value: Any) -> str:
        return ", ".join(value or [])


class SeveralField(forms.Field):
    """Some texts, one of `choices` each if there are choices. Raises for too many, too long and NUL."""

    widget = SeveralInput

    def __init__(self, *, choices: list[tuple[str, Any]] | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self.choices = choices

    def clean(self, value: Any) -> list[str]:
        values = [str(text) for text in value or []]
        if len(values) > MOST_VALUES:
            raise ValidationError(
                _(
                    "%(count)d values; at most %(most)d are possible at once. Ask in parts, or by a wider filter."
                ),
                params={"count": len(values), "most": MOST_VALUES},
            )
        for text in values:
            self.check(text)
        return values

    def check(self, text: str) -> None:
        if len(text) > LONGEST or "\0" in text:
            raise ValidationError(
                _("“%(text)s” is no name: at most %(most)d characters, and no NUL."),
                params={"text": text[:40].replace("\0", "\ufffd"), "most": LONGEST},
            )
        if self.choices is not None and text not in dict(self.choices):
            raise ValidationError(
                _("“%(text)s” is none of: %(choices)s."),
                params={"text": text[:40], "choices": ", ".join(dict(self.choices))},
            )


class Several(df.Filter):
    """Any of some texts in a column; `unknown` = the column is empty."""

    field_class = SeveralField

    def filter(self, qs: QuerySet[Model], value: list[str]) -> QuerySet[Model]:
        if not value:
            return qs
        wanted = ["" if text == UNKNOWN else text for text in value]
        return qs.filter(**{f"{self.field_name}__in": wanted})


class OfPod(Several):
    """Containers by a column of their pod's row; `unknown` = the pod's is empty."""

    def filter(self, qs: QuerySet[Model], value: list[str]) -> QuerySet[Model]:
        if not value:
            return qs
        wanted = ["" if text == UNKNOWN else text for text in value]
        pods = selectors.pod_of_container()
        return qs.filter(Exists(pods.filter(**{f"{self.field_name}__in": wanted})))


class Cross(df.Filter):
    """Containers that cross in any of these ways."""

    field_class = SeveralField

    def filter(self, qs: QuerySet[Model], value: list[str]) -> QuerySet[Model]:
        wanted = Q()
        for way in value:
            wanted |= Q(**{f"cross_{way}": True})
        return qs.filter(wanted)


class Answering(df.Filter):
    """Nodes by the state of an exporter that is collected from."""

    field_class = SeveralField

    def filter(self, qs: QuerySet[Model], value: list[str]) -> QuerySet[Model]:
        if not value:
            return qs
        return qs.filter(pk__in=Endpoint.objects.filter(enabled=True, state__in=value).values("node"))


class Presence(df.ChoiceFilter):
    """Whether something is so: a column that holds true, or a number above 0; null = unknown."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(choices=PRESENCE, **rest)

    def filter(self, qs: QuerySet[Model], value: str) -> QuerySet[Model]:
        tests: dict[str, tuple[str, Any]] = {
            "true": ("gt", 0),
            "false": ("exact", 0),
            UNKNOWN: ("isnull", True),
        }
        if value not in tests:
            return qs
        lookup, operand = tests[value]
        return qs.filter(**{f"{self.field_name}__{lookup}": operand})


class Flag(df.ChoiceFilter):
    """A column that is true or false."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(choices=PRESENCE[:2], **rest)

    def filter(self, qs: QuerySet[Model], value: str) -> QuerySet[Model]:
        return qs.filter(**{self.field_name: value == "true"}) if value else qs


class Text(df.CharFilter):
    """One text of bounded length."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(max_length=LONGEST, **rest)


class MomentField(IsoDateTimeField):
    """A moment, in UTC whatever its zone: databases know fewer zones than texts can name."""

    def clean(self, value: Any) -> Any:
        found = super().clean(value)
        try:
            return found and found.astimezone(UTC)
        except OverflowError:
            raise ValidationError(_("No clock will ever show this moment.")) from None


class Moment(df.IsoDateTimeFilter):
    """A moment in ISO 8601."""

    field_class = MomentField


def least(column: str, label: Any) -> df.NumberFilter:
    return df.NumberFilter(field_name=column, lookup_expr="gte", label=label, min_value=0)


def most(column: str, label: Any) -> df.NumberFilter:
    return df.NumberFilter(field_name=column, lookup_expr="lte", label=label, min_value=0)


class NodeFilter(df.FilterSet):
    """Nodes."""

    q = Text(method="search", label=_("Name or uid"))
    cluster = Several(field_name="cluster__slug", label=_("Cluster"))
    name = Several(field_name="name", label=_("Name"))
    topology = Several(field_name="topology_id", label=_("Topology hash"))
    topology_policy = Several(field_name="topology_policy", label=_("Topology policy"))
    topology_scope = Several(field_name="topology_scope", label=_("Topology scope"))
    cpu_policy = Several(field_name="cpu_policy", label=_("CPU manager policy"))
    memory_policy = Several(field_name="memory_policy", label=_("Memory manager policy"))
    state = Answering(choices=list(Endpoint.State.choices), label=_("Exporter"))
    crossing = Presence(field_name="crossing", label=_("Has cross-NUMA containers"))
    problems = Presence(field_name="problems", label=_("Readers have problems"))
    contradictions = Presence(field_name="contradictions", label=_("Settings contradict each other"))
    numa_nodes_min = least("numa_nodes", _("NUMA nodes, at least"))
    numa_nodes_max = most("numa_nodes", _("NUMA nodes, at most"))
    cpus_min = least("cpus", _("CPUs, at least"))
    cpus_max = most("cpus", _("CPUs, at most"))
    busy_min = least("busy", _("Busy share, at least"))
    busy_max = most("busy", _("Busy share, at most"))
    cpu_allocation_min = least("cpu_allocation", _("CPU allocation, at least"))
    cpu_allocation_max = most("cpu_allocation", _("CPU allocation, at most"))
    memory_allocation_min = least("memory_allocation", _("Memory allocation, at least"))
    memory_allocation_max = most("memory_allocation", _("Memory allocation, at most"))
    worst_cost_min = least("worst_cost", _("Highest cost, at least"))
    seen_after = Moment(field_name="last_seen", lookup_expr="gte", label=_("Last seen after"))
    seen_before = Moment(field_name="last_seen", lookup_expr="lt", label=_("Last seen before"))

    class Meta:
        model = Node
        fields: list[str] = []

    def search(self, found: QuerySet[Node], _name: str, value: str) -> QuerySet[Node]:
        return found.filter(Q(name__icontains=value) | Q(uid__istartswith=value))


class ContainerFilter(df.FilterSet):
    """Containers."""

    q = Text(method="search", label=_("Name, pod or id"))
    cluster = Several(field_name="node__cluster__slug", label=_("Cluster"))
    node = Several(field_name="node__name", label=_("Node"))
    namespace = Several(field_name="namespace", label=_("Namespace"))
    pod = Several(field_name="pod", label=_("Pod"))
    topology_policy = Several(field_name="node__topology_policy", label=_("Topology policy"))
    kind = Several(field_name="kind", choices=[*Container.Kind.choices, PRESENCE[2]], label=_("Kind"))
    qos = Several(field_name="qos", choices=[*Container.Qos.choices, PRESENCE[2]], label=_("QoS class"))
    cross = Cross(choices=CROSSES, label=_("What crosses"))
    crossing = Presence(field_name="crossing", label=_("Cross-NUMA"))
    pinning = Several(field_name="pinning", label=_("Why (not) pinned"))
    kubernetes = Flag(field_name="kubernetes", label=_("In Kubernetes"))
    owner = OfPod(field_name="owner_name", label=_("Owner"))
    owner_kind = OfPod(field_name="owner_kind", label=_("Kind of owner"))
    cost_min = least("cost", _("Cost, at least"))
    locality_max = most("locality", _("Locality, at most"))
    remote_pages_min = least("remote_pages", _("Share of remote pages, at least"))
    cpu_use_min = least("cpu_use", _("CPUs in use, at least"))
    memory_min = least("memory", _("Memory in bytes, at least"))

    class Meta:
        model = Container
        fields: list[str] = []

    def search(self, found: QuerySet[Container], _name: str, value: str) -> QuerySet[Container]:
        return found.alias(names=CONTAINER_NAMES).filter(Q(names__icontains=value) | container_id(value))


class EndpointFilter(df.FilterSet):
    """Endpoints of exporters."""

    cluster = Several(field_name="cluster__slug", label=_("Cluster"))
    node = Several(field_name="node__name", label=_("Node"))
    state = Several(field_name="state", choices=list(Endpoint.State.choices), label=_("State"))
    enabled = Flag(field_name="enabled", label=_("Collected"))

    class Meta:
        model = Endpoint
        fields: list[str] = []


class EventFilter(df.FilterSet):
    """Events of a node."""

    code = Several(field_name="code", choices=list(NodeEvent.Code.choices), label=_("What"))
    after = Moment(field_name="at", lookup_expr="gte", label=_("After"))
    before = Moment(field_name="at", lookup_expr="lt", label=_("Before"))

    class Meta:
        model = NodeEvent
        fields: list[str] = []


class FailureFilter(df.FilterSet):
    """Lines of pods that kubelets refused."""

    q = Text(method="search", label=_("Owner, pod or message"))
    namespace = Several(field_name="namespace", label=_("Namespace"))
    owner = Several(field_name="owner_name", label=_("Owner"))
    owner_kind = Several(field_name="owner_kind", label=_("Kind of owner"))
    node = Several(field_name="node_name", label=_("Node"))
    reason = Several(field_name="reason", label=_("Reason"))
    after = Moment(field_name="last", lookup_expr="gte", label=_("Last refused after"))
    before = Moment(field_name="first", lookup_expr="lt", label=_("First refused before"))

    class Meta:
        model = Failure
        fields: list[str] = []

    def search(self, found: QuerySet[Failure], _name: str, value: str) -> QuerySet[Failure]:
        named = Q(owner_name__icontains=value) | Q(last_pod__icontains=value) | Q(message__icontains=value)
        return found.filter(named)


class StartFilter(df.FilterSet):
    """Pods that were admitted and do not start; their owners as `selectors.failures.starting` names them."""

    q = Text(method="search", label=_("Owner or pod"))
    namespace = Several(field_name="namespace", label=_("Namespace"))
    owner = Several(field_name="line_name", label=_("Owner"))
    owner_kind = Several(field_name="line_kind", label=_("Kind of owner"))
    node = Several(field_name="node_name", label=_("Node"))
    reason = Several(field_name="reason", label=_("Reason"))
    after = Moment(field_name="created", lookup_expr="gte", label=_("Made after"))
    before = Moment(field_name="created", lookup_expr="lt", label=_("Made before"))

    class Meta:
        model = Pod
        fields: list[str] = []

    def search(self, found: QuerySet[Pod], _name: str, value: str) -> QuerySet[Pod]:
        return found.filter(Q(line_name__icontains=value) | Q(name__icontains=value))


class PodFilter(df.FilterSet):
    """Pods of a cluster, as `selectors.kubernetes.pods` annotates them."""

    q = Text(method="search", label=_("Name, owner or uid"))
    namespace = Several(field_name="namespace", label=_("Namespace"))
    node = Several(field_name="node_name", label=_("Node"))
    told = Flag(field_name="told", label=_("An exporter tells of its node"))
    placement = Several(field_name="placement", choices=list(placing.LABELS.items()), label=_("Placement"))
    phase = Several(field_name="phase", label=_("Phase"))
    reason = Several(field_name="reason", label=_("Reason"))
    owner = Several(field_name="owner_name", label=_("Owner"))
    owner_kind = Several(field_name="owner_kind", label=_("Kind of owner"))
    scheduler = Several(field_name="scheduler", label=_("Scheduler"))
    qos = Several(field_name="qos", label=_("QoS class"))
    after = Moment(field_name="created", lookup_expr="gte", label=_("Made after"))
    before = Moment(field_name="created", lookup_expr="lt", label=_("Made before"))

    class Meta:
        model = Pod
        fields: list[str] = []

    def search(self, found: QuerySet[Pod], _name: str, value: str) -> QuerySet[Pod]:
        return found.alias(names=POD_NAMES).filter(Q(names__icontains=value) | _has_uid(value))


def _has_uid(value: str) -> Q:
    """A pod's uid, or that by which its kubelet knows it."""
    either = (value, value.lower())  # Kubernetes writes them in small letters
    return Q(uid__in=either) | Q(kubelet_uid__in=either)


class ClusterEventFilter(df.FilterSet):
    """Events of a cluster."""

    kind = Several(field_name="kind", label=_("Kind of object"))
    namespace = Several(field_name="namespace", label=_("Namespace"))
    object = Several(field_name="name", label=_("Object"))
    object_uid = Several(field_name="object_uid", label=_("Uid of the object"))
    reason = Several(field_name="reason", label=_("Reason"))
    warning = Flag(field_name="warning", label=_("Is a warning"))
    after = Moment(field_name="last", lookup_expr="gte", label=_("After"))
    before = Moment(field_name="last", lookup_expr="lt", label=_("Before"))

    class Meta:
        model = ClusterEvent
        fields: list[str] = []
