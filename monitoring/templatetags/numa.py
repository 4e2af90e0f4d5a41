"""How templates of this product write figures, icons and small bars. Unknown is shown as unknown, never as 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from monitoring import selectors
from monitoring.figures import amounts, cookies, drawing, failures, placing, sentences, words
from monitoring.models import NodeEvent, Pod
from monitoring.services.watching.failures import refused
from numacore.cpuset import CpuSet
from numacore.diagnosis import Reason
from numacore.report import ContainerReport
from numacore.topology import HugePages

register = template.Library()
NEGLIGIBLE = 0.005
MOST_NAMED = 3
BAR = 16
"""Height of a small column."""


def missing(value: object) -> bool:
    """Whether nobody knows it: None, or what a template makes of an attribute of None."""
    return value is None or value == ""


@register.filter
def known(value: object) -> object:
    """The value, or `unknown` where nobody knows it."""
    return _("unknown") if missing(value) else value


@register.filter
def whole(value: float | None) -> str:
    """A number with the digits grouped as the language does."""
    return _("unknown") if value is None or missing(value) else number_format(value, 0, force_grouping=True)


@register.filter
def amount(value: float | None) -> str:
    """A number with one decimal where it has any."""
    if value is None or missing(value):
        return _("unknown")
    return number_format(value, 0 if abs(value - round(value)) < 0.05 else 1, force_grouping=True)


@register.filter
def share(value: float | None) -> str:
    """A share, 0 to 1, as a percentage."""
    return _("unknown") if value is None or missing(value) else f"{number_format(value * 100, 0)}%"


@register.filter
def times(value: float | None) -> str:
    """A cost, 1 = all local."""
    return _("unknown") if value is None or missing(value) else f"{number_format(value, 2)} ×"


@register.filter
def size(value: float | None) -> str:
    """Bytes in binary units."""
    if value is None or missing(value):
        return _("unknown")
    return amounts.size(value)


WRITERS = {"whole": whole, "amount": amount, "share": share, "times": times, "size": size}


@register.filter
def shown(value: float | None, form: str) -> str:
    """A figure in one of these forms, quiet where nobody knows it."""
    text = WRITERS[form](value)
    return format_html('<span class="text-secondary">{}</span>', text) if missing(value) else text


@register.filter
def age(seconds: float | None) -> str:
    """How old something is, in the largest fitting unit. A moment by a clock that is ahead is new."""
    if seconds is None:
        return _("never heard")
    seconds = max(0.0, seconds)
    for limit, divisor, form in (
        (10, 1, _("%s s")),
        (120, 1, _("%s s")),
        (7200, 60, _("%s min")),
        (172800, 3600, _("%s h")),
    ):
        if seconds < limit:
            return form % number_format(seconds / divisor, 1 if limit == 10 else 0)
    return _("%s d") % number_format(seconds / 86400, 0)


@register.filter
def since(moment: datetime | None) -> str:
    """How long ago a moment is."""
    return age(None if moment is None else max(0.0, (timezone.now() - moment).total_seconds()))


@register.filter
def said(reason: Reason | str) -> sentences.Said:
    """The sentence and the remedy of a reason, or of a code alone."""
    return sentences.spoken(reason) if isinstance(reason, str) else sentences.reason(reason)


@register.filter
def numbers(ids: tuple[int, ...] | list[int]) -> str:
    """Ids in a row."""
    return ", ".join(map(str, ids))


@register.filter
def configured(pools: Iterable[HugePages] | None) -> list[HugePages]:
    """Sizes of huge pages of which there are some, or nobody knows."""
    return [each for each in pools or () if each.total != 0]


@register.filter
def ranges(text: str) -> str:
    """Ids split by commas, in the kernel's list format: 0,1,2,3 is 0-3."""
    return str(CpuSet.parse(text)) if text else ""


@register.filter
def get(mapping: Mapping[Any, Any] | None, key: Any) -> Any:
    """A mapping's value, None if there is none."""
    return None if mapping is None else mapping.get(key)


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """An icon of the sprite; without a label it is decoration."""
    href = f"{static('icons.svg')}#{name}"
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><use href="{}"></use></svg>', label, href
        )
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}"></use></svg>', href)


@register.simple_tag
def script_words() -> SafeString:
    """The strings that scripts show, in the language of this request."""
    return json_script(words.catalogue(), "words")


@register.inclusion_tag("numa/saves.html", takes_context=True)
def saves(context: template.Context, name: str, label: str) -> dict[str, Any]:
    """Links that save a table of this page: its name among the page's tables, and what people call it."""
    return {"label": label, "files": context["view"].files(name)}


@register.inclusion_tag("numa/bars.html")
def numa_bars(ids: list[int], shares: Mapping[int, float] | None, kind: str) -> dict[str, Any]:
    """A small column for each NUMA node, as high as its share; the text beside it says the same."""
    width = max(4.0, min(22.0, 132 / max(1, len(ids))))
    found = {} if shares is None else shares
    grounds = [_bar(place, 1.0, width) for place in range(len(ids))]
    parts = [_bar(place, found.get(node, 0.0), width) for place, node in enumerate(ids)]
    text = summary(found)
    return {
        "grounds": "".join(grounds),
        "parts": "".join(parts),
        "width": round(len(ids) * (width + 2)),
        "text": _("unknown") if shares is None else text or "–",
        "known": shares is not None,
        "kind": kind,
    }


def summary(parts: Mapping[int, float]) -> str:
    """The largest shares in words, the rest as a number of NUMA nodes."""
    seen = sorted((node for node, part in parts.items() if part >= NEGLIGIBLE), key=lambda node: -parts[node])
    words = [f"{node}: {share(parts[node])}" for node in sorted(seen[:MOST_NAMED])]
    more = len(seen) - MOST_NAMED
    return " · ".join([*words, f"+{more}"] if more > 0 else words)


def _bar(place: int, part: float, width: float) -> str:
    """One column of a path: a path for all columns keeps a page with 250 containers light."""
    if part <= 0:
        return ""
    height = max(1.5, part * BAR)
    return f"M{place * (width + 2):.1f} {BAR}h{width:.1f}v-{height:.1f}h-{width:.1f}z"


@register.inclusion_tag("numa/meter.html")
def meter(value: float | None, kind: str = "", label: str = "", most: float = 1.0) -> dict[str, Any]:
    """A horizontal bar of a share."""
    part = 0.0 if value is None else max(0.0, min(1.0, value / most))
    return {"width": round(part * 100, 1), "known": value is not None, "kind": kind, "label": label}


class Link(NamedTuple):
    """One entry of the menu as a page shows it."""

    label: Any
    url: str
    icon: str
    active: bool
    key: str
    needs: Any = ""
    """Why this person cannot open it; then it has no address."""


# Second letters of the keys "g o", "g m", "g c".
KEYS = {"overview": "o", "monitoring": "m", "containers": "c"}
# Pages that belong to an entry of the menu without being it.
PARENTS = {
    "node": "monitoring",
    "connection": "overview",
    "pods": "containers",
    "starting": "failures",
    "cleanups": "failures",
    "cleanup": "failures",
    **dict.fromkeys(("policy", "policy_cluster", "policy_pool", "policy_pool_new"), "policies"),
    **dict.fromkeys(("preview", "preview_cluster", "rollouts", "rollout"), "policies"),
}


@register.simple_tag(takes_context=True)
def menu_links(context: template.Context) -> list[Link]:
    """The menu for this person; entries of a cluster lead to the one that is looked at, or was last."""
    menu = context.get("menu") or []
    slug = _cluster(context)
    match = getattr(context.get("request"), "resolver_match", None)
    name = match.url_name if match else ""
    here = PARENTS.get(name, name)
    return [
        Link(entry.slot.label, "", entry.slot.icon, False, "", entry.needs)
        if entry.needs
        else _link(entry.slot, slug, here)
        for entry in menu
        if entry.needs or slug or not entry.slot.per_cluster
    ]


@register.simple_tag(takes_context=True)
def quick_links(context: template.Context) -> list[Link]:
    """The quick entries of this cluster's overview."""
    return [_link(slot, _cluster(context), None) for slot in context.get("quick_entries") or []]


def _cluster(context: template.Context) -> str | None:
    cluster = context.get("cluster")
    if cluster is not None:
        return str(cluster.slug)
    known = [each.cluster.slug for each in context.get("clusters") or selectors.clusters()]
    last = context["request"].COOKIES.get(cookies.LAST_CLUSTER)
    return last if last in known else next(iter(known), None)


def _link(slot: Any, slug: str | None, here: str | None) -> Link:
    url = reverse(slot.url_name, kwargs={"cluster": slug} if slot.per_cluster else None)
    if slot.query:
        url = f"{url}?{slot.query}"
    return Link(slot.label, url, slot.icon, slot.url_name == here, KEYS.get(slot.url_name, ""))


@register.inclusion_tag("numa/bars.html")
def memory_bars(amounts: Mapping[str, int] | None) -> dict[str, Any]:
    """Bars of a container's memory from its row: bytes by NUMA node."""
    found = {int(node): float(part) for node, part in (amounts or {}).items()}
    total = sum(found.values())
    parts = {node: part / total for node, part in found.items()} if total else None
    return numa_bars(sorted(found), parts, "memory")


@register.simple_tag
def ratio(part: float | None, of: float | None) -> float | None:
    """A share; None where a side is unknown or there is nothing to have a share of."""
    return None if part is None or not of else part / of


@register.simple_tag
def ratio_of_cost(cost: float | None, most: float) -> float | None:
    """How much of the highest surcharge a cost has: a bar from 1 (all local), not from 0."""
    return None if cost is None or most <= 1 else (cost - 1) / (most - 1)


@register.filter
def title_of(report: ContainerReport) -> str:
    """The name that people know a container by."""
    return drawing.title(report)


@register.filter
def by_cost(reports: Iterable[ContainerReport]) -> list[ContainerReport]:
    """Containers that cross first, then those that pay most."""
    return sorted(reports, key=lambda each: (not each.cross, each.cost is None, -(each.cost or 0)))


@register.filter
def event_detail(event: NodeEvent) -> str:
    """What is known of an event beside its name."""
    return sentences.event(event.code, event.values)


@register.filter
def placed(code: str) -> str:
    """Whether a pod's place is known, in a few words."""
    return placing.label(code)


@register.filter
def unplaced(code: str) -> sentences.Said | None:
    """Why it is not, and the remedy."""
    return placing.reason(code)


@register.simple_tag
def added_by_api(fields: str | tuple[str, ...]) -> SafeString | str:
    """A mark for names and uids that the API server told and the node could not."""
    words = placing.added(fields)
    if not words:
        return ""
    return format_html('<span title="{}">{}</span>', placing.ADDED_MORE, ", ".join(words))


@register.simple_tag
def failures_of(slug: str, pod: Pod) -> str:
    """The address of the line that a pod is of, if it was refused or does not start; "" = neither."""
    if refused({"phase": pod.phase, "reason": pod.reason}):
        page = "failures"
    elif pod.reason in Pod.START_FAILURES:
        page = "starting"
    else:
        return ""
    owner = {"owner": pod.owner_name or pod.name, "owner_kind": pod.owner_kind or "Pod"}
    query = urlencode({"namespace": pod.namespace, **owner, "node": pod.node_name, "reason": pod.reason})
    return f"{reverse(page, kwargs={'cluster': slug})}?{query}"


@register.filter
def start_failure(reason: str) -> str:
    """What a reason of a pod that does not start means."""
    return failures.start_failure(reason)
