"""What numaweb asks and watches: API servers, exporters, Prometheus, and this machine if it is a node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.figures import connecting, sentences
from monitoring.kube.access import in_cluster
from monitoring.kube.kubeconfig import AccessError
from monitoring.models import Cluster, Connection, Endpoint
from monitoring.selectors import timeline
from monitoring.services import endpoints
from monitoring.services.watching import trial
from monitoring.sources.failures import SourceError
from numaweb import __version__
from numaweb.doctor.finding import Finding
from numaweb.doctor.stores import SKEW_SECONDS

MOST = 200
"""Exporters that are asked; of the others counts what collection wrote down."""
NAMED = 5
ROOT = Path("/")


def clusters() -> Iterator[Finding]:
    rows = Connection.objects.filter(enabled=True, cluster__enabled=True).select_related("cluster")
    for row in rows:
        yield from cluster(row)
    if not rows:
        text, remedy = _("No cluster has a connection to Kubernetes."), connecting.how_to_connect()
        yield Finding("clusters", "unchecked", text, remedy)


def cluster(row: Connection) -> Iterator[Finding]:
    name = row.cluster.slug
    if row.source == Connection.Source.IN_CLUSTER and not is_pod():
        yield as_written_down(row)
        return
    told = trial.try_connection(row)
    if told.error:
        text = _("%(cluster)s: its API server cannot be asked: %(cause)s")
        remedy = sentences.remedy(told.remedy)
        yield Finding("clusters", "failed", text % {"cluster": name, "cause": told.error}, remedy)
        return
    text = _("%(cluster)s: Kubernetes %(version)s answers.") % {"cluster": name, "version": told.version}
    if told.missing:
        lacking = _("Rights are missing: %(rights)s.") % {"rights": ", ".join(told.missing)}
        yield Finding("clusters", "warning", f"{text} {lacking}", connecting.grant(told.missing))
    else:
        yield Finding("clusters", "ok", f"{text} {_('All rights to read are there.')}")


def is_pod() -> bool:
    """Whether this process has a ServiceAccount of its own; web and worker have none, the watcher has."""
    try:
        in_cluster()
    except AccessError:
        return False
    return True


def as_written_down(row: Connection) -> Finding:
    """What the watcher last wrote of a cluster that only its own pod may ask."""
    said = {"cluster": row.cluster.slug, "state": row.get_state_display(), "cause": row.error or "-"}
    text = _("%(cluster)s: cannot be asked from here; its watcher says: %(state)s, cause: %(cause)s") % said
    remedy = _("Run the doctor in the watcher's pod to ask it anew.")
    return Finding(
        "clusters", "failed" if row.state == Connection.State.FAILING else "unchecked", text, remedy
    )


def exporters() -> Iterator[Finding]:
    for each in Cluster.objects.filter(enabled=True).order_by("slug"):
        rows = list(Endpoint.objects.filter(cluster=each, enabled=True).order_by("pk"))
        if rows:
            yield from exporters_of(each, rows)


def exporters_of(of: Cluster, rows: Sequence[Endpoint]) -> Iterator[Finding]:
    asked = rows[:: -(-len(rows) // MOST)]
    trials = dict(zip(asked, endpoints.try_all(asked), strict=True))
    answering = {row: told for row, told in trials.items() if not told.error}
    said = {"cluster": of.slug, "answering": len(answering), "asked": len(asked), "all": len(rows)}
    text = (
        _("%(cluster)s: %(answering)s of %(asked)s exporters that were asked answer (%(all)s in all).") % said
    )
    yield Finding("exporters", "ok" if len(answering) == len(asked) else "warning", text)
    causes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row, told in trials.items():
        if told.error:
            causes[told.error, told.remedy].append(str(row))
    for (cause, remedy), names in causes.items():
        text = f"{of.slug}: {listed(names)}: {cause}"
        yield Finding("exporters", "failed", text, sentences.remedy(remedy))
    conflicts = Endpoint.objects.filter(~Q(conflict=""), cluster=of, enabled=True).values_list(
        "conflict", flat=True
    )
    for conflict in conflicts[:NAMED]:
        yield Finding("exporters", "warning", f"{of.slug}: {conflict}")
    other = [f"{row} {told.version}" for row, told in answering.items() if told.version != __version__]
    if other:
        text = _("%(cluster)s: another version than numaweb %(version)s: %(which)s.")
        values = {"cluster": of.slug, "version": __version__, "which": listed(other)}
        remedy = _("Neighbouring versions work together; update the exporters when you can.")
        yield Finding("exporters", "warning", text % values, remedy)
    apart = [
        f"{row} {told.skew:+.1f} s"
        for row, told in answering.items()
        if told.skew is not None and abs(told.skew) > SKEW_SECONDS
    ]
    if apart:
        text = _("%(cluster)s: clocks differ from this machine's: %(which)s.")
        remedy = _("Let both keep their time by NTP.")
        yield Finding("exporters", "warning", text % {"cluster": of.slug, "which": listed(apart)}, remedy)
    elif answering:
        text = _("%(cluster)s: the exporters' clocks are within %(seconds)s s of this machine's.")
        values = {"cluster": of.slug, "seconds": f"{SKEW_SECONDS:g}"}
        yield Finding("exporters", "ok", text % values)


def listed(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    shown, more = ", ".join(names[:NAMED]), len(names) - NAMED
    if more <= 0:
        return shown
    return ngettext("%(shown)s and %(more)s more", "%(shown)s and %(more)s more", more) % {
        "shown": shown,
        "more": more,
    }


def prometheus() -> Iterator[Finding]:
    source = timeline.configured()
    if source is None:
        text = _("None is configured: history comes from numaweb's own store.")
        yield Finding("prometheus", "unchecked", text)
        return
    try:
        found = source.instant("count(numa_node_cpu_usage)")
    except SourceError as error:
        yield Finding("prometheus", "failed", str(error), sentences.remedy(error.remedy))
        return
    number = int(found[0].points[-1][1] or 0) if found and found[0].points else 0
    if number:
        text = _("It answers and has figures of exporters (%(number)s series of numa_node_cpu_usage).")
        yield Finding("prometheus", "ok", text % {"number": number})
    else:
        text = _("It answers and has no figures of exporters.")
        remedy = _("Let it scrape them: docs/en/prometheus.md has both ways.")
        yield Finding("prometheus", "warning", text, remedy)


def node() -> Iterator[Finding]:
    """containerd and NRI are to be seen on a node only, by their sockets."""
    if not (ROOT / "var/lib/kubelet").is_dir():
        text = _(
            "This machine is no node, or its files are not mounted here: containerd and NRI cannot be seen."
        )
        remedy = _("Run the doctor on a node to look at them.")
        yield Finding("node", "unchecked", text, remedy)
        return
    if not there("run/containerd/containerd.sock"):
        text = _("There is a kubelet and no socket of containerd in /run/containerd.")
        remedy = _("Look at systemctl status containerd. Other runtimes are read, too, but without NRI.")
        yield Finding("node", "warning", text, remedy)
        return
    yield Finding("node", "ok", _("containerd listens."))
    if there("run/nri/nri.sock", "var/run/nri/nri.sock"):
        yield Finding("node", "ok", _("NRI is switched on: its socket is there."))
    else:
        text = _("NRI is off: there is no socket in /run/nri.")
        remedy = _(
            "It is only needed to move running containers. containerd 2 has it on by default; in 1.7 set disable = false "
            'under plugins."io.containerd.nri.v1.nri" and restart containerd.'
        )
        yield Finding("node", "warning", text, remedy)


def there(*paths: str) -> bool:
    return any((ROOT / path).is_socket() for path in paths)
