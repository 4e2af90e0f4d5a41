"""Manifests as what they make: groups of equal pods, each with how many, who schedules them and what they ask for.

Takes documents that are already values (of YAML or JSON) and anything that carries a pod template. Defaults are filled in as
the API server does; what it would refuse of resources is refused here, every fault of a document at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from numacore import quantity
from numacore.diagnosis import Reason
from numacore.kubelet import resource
from numacore.kubelet.pod import Container, Pod, PodResources, Resources

POLICY_ANNOTATION = "volcano.sh/numa-topology-policy"
DEFAULT_SCHEDULER = "default-scheduler"
VOLCANO_GROUP = "batch.volcano.sh/"
MAX_DOCUMENTS = 200
"""Documents in one manifest, lists unpacked. More is a mistake of whoever pasted it."""
MOST_COUNT = 2**31 - 1
"""Replicas and the like are int32."""
MAX_CONTAINERS = 200
"""Containers of one pod."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Equal pods of one workload."""

    kind: str
    name: str
    namespace: str = "default"
    task: str = ""
    """Name of the task of a Volcano job; empty for every other kind."""
    replicas: int | None
    """How many pods; None = one on every node (DaemonSet)."""
    scheduler: str = DEFAULT_SCHEDULER
    policy: str = ""
    """Text of the policy annotation on the pods, empty = absent."""
    misplaced_policy: str = ""
    """The annotation where nobody reads it: on the workload and not on its pods."""
    where: str
    """Path of the pod's spec in its document."""
    pod: Pod

    @property
    def title(self) -> str:
        return f"{self.kind}/{self.name}" + (f"/{self.task}" if self.task else "")


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a field. `document`: its place in the manifest, from 1."""

    document: int
    field: str
    reason: Reason


class ManifestError(ValueError):
    """A manifest that the API server would refuse, or that holds no pod."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(
            "; ".join(f"document {each.document}: {each.field}: {each.reason.code}" for each in faults)
        )
        self.faults = tuple(faults)


def read(documents: Sequence[Any]) -> tuple[Group, ...]:
    """The groups of pods that documents make, in their order. Documents without pods (Service, ConfigMap, ...) are passed over.

    Raises:
        ManifestError: with every fault found, or that there is no pod in it.
    """
    found: list[Group] = []
    faults: list[Fault] = []
    for number, document in enumerate(_unpacked(documents), start=1):
        if number > MAX_DOCUMENTS:
            faults.append(Fault(number, "", Reason("too-many-documents", {"most": MAX_DOCUMENTS})))
            break
        reader = _Reader(number, faults)
        found += reader.groups(document)
    if not found and not faults:
        faults.append(Fault(1, "kind", Reason("no-pods", {"kinds": ", ".join(sorted(KINDS))})))
    if faults:
        raise ManifestError(faults)
    return tuple(found)


def _unpacked(documents: Sequence[Any]) -> Iterator[Any]:
    """Documents with Lists replaced by what they list; empty ones (a lone `---`) left out."""
    for document in documents:
        if document is None:
            continue
        items = document.get("items") if isinstance(document, Mapping) else None
        if isinstance(items, list) and str(document.get("kind", "")).endswith("List"):
            yield from items
        else:
            yield document


class _Reader:
    """Reads one document and collects its faults."""

    def __init__(self, number: int, faults: list[Fault]) -> None:
        self.number, self.faults = number, faults

    def fault(self, field: str, code: str, **values: str | int | float) -> None:
        self.faults.append(Fault(self.number, field, Reason(code, values)))

    def mapping(self, parent: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
        """A mapping under a key; absent ones are empty."""
        value = parent.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.fault(_join(path, key), "not-a-mapping", found=_shown(value))
            return {}
        return value

    def items(self, parent: Mapping[str, Any], key: str, path: str) -> list[tuple[str, Mapping[str, Any]]]:
        """The mappings of a list with their paths."""
        value = parent.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(_join(path, key), "not-a-list", found=_shown(value))
            return []
        found = []
        for index, item in enumerate(value):
            here = f"{_join(path, key)}[{index}]"
            if isinstance(item, Mapping):
                found.append((here, item))
            else:
                self.fault(here, "not-a-mapping", found=_shown(item))
        return found

    def text(self, parent: Mapping[str, Any], key: str, path: str, default: str = "") -> str:
        value = parent.get(key)
        if value is None:
            return default
        if isinstance(value, str):
            return value
        self.fault(_join(path, key), "not-a-text", found=_shown(value))
        return default

    def count(self, parent: Mapping[str, Any], key: str, path: str, default: int) -> int:
        value = parent.get(key)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNT:
            return value
        self.fault(_join(path, key), "not-a-count", found=_shown(value))
        return default

    def groups(self, document: Any) -> list[Group]:
        if not isinstance(document, Mapping):
            self.fault("", "not-a-mapping", found=_shown(document))
            return []
        kind = self.text(document, "kind", "")
        if not kind and "containers" in self.mapping(document, "spec", ""):
            kind = "Pod"  # a pod template on its own, as it stands below `template:`
        if kind not in KINDS:
            if not kind:
                self.fault("kind", "no-kind")
            return []
        return KINDS[kind](self, document, kind)

    def group(
        self,
        document: Mapping[str, Any],
        template: Mapping[str, Any],
        path: str,
        replicas: int | None,
        *,
        task: str = "",
        policy: str = "",
        scheduler: str = "",
    ) -> Group:
        """One group from a pod template. `policy` and `scheduler` are the workload's own, which win over the template's."""
        meta = self.mapping(document, "metadata", "")
        own = document is template
        template_meta = self.mapping(template, "metadata", path)
        annotations = self.mapping(template_meta, "annotations", _join(path, "metadata"))
        outer = {} if own else self.mapping(meta, "annotations", "metadata")
        spec_path = _join(path, "spec")
        spec = self.mapping(template, "spec", path)
        name = self.text(meta, "name", "metadata") or self.text(meta, "generateName", "metadata")
        wished = policy or self.text(
            annotations, POLICY_ANNOTATION, _join(_join(path, "metadata"), "annotations")
        )
        return Group(
            kind=self.text(document, "kind", "") or "Pod",
            name=name or "unnamed",
            namespace=self.text(meta, "namespace", "metadata") or "default",
            task=task,
            replicas=replicas,
            scheduler=scheduler or self.text(spec, "schedulerName", spec_path) or DEFAULT_SCHEDULER,
            policy=wished,
            misplaced_policy="" if wished else self.text(outer, POLICY_ANNOTATION, "metadata.annotations"),
            where=spec_path,
            pod=self.pod(spec, spec_path, name or "unnamed"),
        )

    def pod(self, spec: Mapping[str, Any], path: str, uid: str) -> Pod:
        init = self.containers(spec, "initContainers", path)
        containers = self.containers(spec, "containers", path)
        if not containers:
            self.fault(_join(path, "containers"), "no-containers")
        self.unique_names(spec, path)
        return Pod(
            uid=uid,
            containers=containers,
            init=init,
            resources=self.pod_resources(spec, path, init, containers),
        )

    def unique_names(self, spec: Mapping[str, Any], path: str) -> None:
        seen: set[str] = set()
        for key in ("initContainers", "containers"):
            listed = spec.get(key)
            for index, item in enumerate(listed if isinstance(listed, list) else ()):
                name = item.get("name") if isinstance(item, Mapping) else None
                if isinstance(name, str) and name in seen:
                    self.fault(f"{_join(path, key)}[{index}].name", "duplicate-name", name=name[:80])
                elif isinstance(name, str):
                    seen.add(name)

    def containers(self, spec: Mapping[str, Any], key: str, path: str) -> tuple[Container, ...]:
        listed = self.items(spec, key, path)
        if len(listed) > MAX_CONTAINERS:
            self.fault(_join(path, key), "too-many-containers", most=MAX_CONTAINERS, found=len(listed))
            listed = listed[:MAX_CONTAINERS]
        return tuple(self.container(item, here, init=key == "initContainers") for here, item in listed)

    def container(self, item: Mapping[str, Any], path: str, *, init: bool) -> Container:
        name = self.text(item, "name", path)
        if not name:
            self.fault(_join(path, "name"), "no-name")
        requests, limits = self.resources(item, path)
        sidecar = init and self.text(item, "restartPolicy", path) == "Always"
        return Container(name, limits | requests, limits, sidecar)

    def pod_resources(
        self,
        spec: Mapping[str, Any],
        path: str,
        init: Sequence[Container],
        containers: Sequence[Container],
    ) -> PodResources | None:
        """`spec.resources`, with requests filled in as the API server does (`defaultPodRequests`, core/v1/defaults.go):
        from the containers' requests where any asks for the resource, else from the limit."""
        if spec.get("resources") is None:
            return None
        requests, limits = self.resources(spec, path)
        asked = {name for container in (*init, *containers) for name in container.requests}
        sums = {name: str(aggregate(init, containers, name)) for name in asked & limits.keys()}
        return PodResources(limits | sums | requests, limits)

    def resources(self, owner: Mapping[str, Any], path: str) -> tuple[Resources, Resources]:
        """Requests and limits as given, checked as `ValidateContainerResourceRequirements` does."""
        here = _join(path, "resources")
        both = self.mapping(owner, "resources", path)
        requests = self.amounts(both, "requests", here)
        limits = self.amounts(both, "limits", here)
        for name, amount in requests.items():
            limit = limits.get(name)
            field = f"{here}.requests.{name}"
            if limit is None:
                if not _may_overcommit(name):
                    self.fault(field, "needs-limit", resource=name)
            elif quantity.parse(amount) > quantity.parse(limit):
                self.fault(field, "above-limit", request=amount, limit=limit)
            elif not _may_overcommit(name) and quantity.parse(amount) != quantity.parse(limit):
                self.fault(field, "not-the-limit", request=amount, limit=limit)
        return requests, limits

    def amounts(self, both: Mapping[str, Any], key: str, path: str) -> Resources:
        found: Resources = {}
        for name, value in self.mapping(both, key, path).items():
            field = f"{path}.{key}.{name}"
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                self.fault(field, "no-quantity", found=_shown(value))
                continue
            try:
                amount = quantity.parse(value)
            except quantity.QuantityError:
                self.fault(field, "no-quantity", found=_shown(value))
                continue
            if amount < 0:
                self.fault(field, "negative", found=_shown(value))
            else:
                found[str(name)] = str(value)
        return found


def _pod(reader: _Reader, document: Mapping[str, Any], _kind: str) -> list[Group]:
    return [reader.group(document, document, "", 1)]


def _pod_template(reader: _Reader, document: Mapping[str, Any], _kind: str) -> list[Group]:
    return [reader.group(document, reader.mapping(document, "template", ""), "template", 1)]


def _replicated(reader: _Reader, document: Mapping[str, Any], _kind: str) -> list[Group]:
    spec = reader.mapping(document, "spec", "")
    template = reader.mapping(spec, "template", "spec")
    return [reader.group(document, template, "spec.template", reader.count(spec, "replicas", "spec", 1))]


def _daemon_set(reader: _Reader, document: Mapping[str, Any], _kind: str) -> list[Group]:
    template = reader.mapping(reader.mapping(document, "spec", ""), "template", "spec")
    return [reader.group(document, template, "spec.template", None)]


def _job(reader: _Reader, document: Mapping[str, Any], _kind: str) -> list[Group]:
    if _is_volcano(document):
        return _volcano_job(reader, document, reader.mapping(document, "spec", ""), "spec")
    return [_batch_job(reader, document, reader.mapping(document, "spec", ""), "spec")]


def _cron_job(reader: _Reader, document: Mapping[str, Any], _kind: str) -> list[Group]:
    outer = reader.mapping(reader.mapping(document, "spec", ""), "jobTemplate", "spec")
    spec = reader.mapping(outer, "spec", "spec.jobTemplate")
    if _is_volcano(document):
        return _volcano_job(reader, document, spec, "spec.jobTemplate.spec")
    return [_batch_job(reader, document, spec, "spec.jobTemplate.spec")]


def _is_volcano(document: Mapping[str, Any]) -> bool:
    return str(document.get("apiVersion", "")).startswith(VOLCANO_GROUP)


def _batch_job(reader: _Reader, document: Mapping[str, Any], spec: Mapping[str, Any], path: str) -> Group:
    """As many pods as run at once: `parallelism`, and no more than `completions`."""
    at_once = reader.count(spec, "parallelism", path, 1)
    wanted = reader.count(spec, "completions", path, at_once)
    template = reader.mapping(spec, "template", path)
    return reader.group(document, template, f"{path}.template", min(at_once, wanted))


def _volcano_job(
    reader: _Reader, document: Mapping[str, Any], spec: Mapping[str, Any], path: str
) -> list[Group]:
    """A group for each task; its `topologyPolicy` overwrites the template's annotation (Volcano, job_controller_util.go)."""
    scheduler = reader.text(spec, "schedulerName", path) or "volcano"
    tasks = reader.items(spec, "tasks", path)
    if not tasks:
        reader.fault(_join(path, "tasks"), "no-tasks")
    return [
        reader.group(
            document,
            reader.mapping(task, "template", here),
            f"{here}.template",
            reader.count(task, "replicas", here, 1),
            task=reader.text(task, "name", here) or f"task{index}",
            policy=reader.text(task, "topologyPolicy", here),
            scheduler=scheduler,
        )
        for index, (here, task) in enumerate(tasks)
    ]


KINDS: Mapping[str, Callable[[_Reader, Mapping[str, Any], str], list[Group]]] = {
    "Pod": _pod,
    "PodTemplate": _pod_template,
    "Deployment": _replicated,
    "StatefulSet": _replicated,
    "ReplicaSet": _replicated,
    "ReplicationController": _replicated,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
}
"""Reader by kind; Volcano's Job and CronJob share their names with Kubernetes' own and differ by apiVersion."""


def _may_overcommit(name: str) -> bool:
    """Whether a request may be below its limit: CPU, memory and the like, no huge pages and no devices."""
    return "/" not in name and not name.startswith(resource.HUGE_PAGES)


def aggregate(init: Sequence[Container], containers: Sequence[Container], name: str) -> resource.Quantity:
    """The most that a pod's containers ask for at a time (component-helpers, resource/helpers.go `AggregateContainerRequests`)."""
    sidecars = most = resource.ZERO
    for each in init:
        asked = each.request(name)
        if each.sidecar:
            sidecars = sidecars + asked
            asked = resource.ZERO
        most = max(most, sidecars + asked, key=_amount)
    apps = sidecars
    for each in containers:
        apps = apps + each.request(name)
    return max(most, apps, key=_amount)


def _amount(each: resource.Quantity) -> Fraction:
    return each.amount


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _shown(value: Any) -> str:
    return repr(value)[:60]
