"""What this room adds to the pages: menu entries, as plain data that `numaweb` gathers for the templates."""

from typing import Literal

import msgspec
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the menu, one card of the overview (`template`), one quick entry of it (a question and the way to its answer), or one action
    on another page (`template`, `url_name` of that page), for whoever has `permission`. Who has it not sees menu entries all the same,
    switched off."""

    kind: Literal["menu", "card", "entry", "action"]
    order: int
    permission: str
    role: Literal["viewer", "operator", "administrator"] = "viewer"
    """The least role that has the permission."""
    label: str | Promise
    section: str | Promise = ""
    url_name: str = ""
    per_cluster: bool = False
    """Whether the address needs the cluster that one looks at."""
    query: str = ""
    """Of the address."""
    icon: str = ""
    template: str = ""


READ = "monitoring.view_cluster"
SECTION = _("NUMA affinity")

SLOTS = [
    Slot(
        kind="menu",
        order=100,
        permission=READ,
        section=SECTION,
        label=_("Overview"),
        url_name="overview",
        per_cluster=True,
        icon="home",
    ),
    Slot(
        kind="menu",
        order=200,
        permission=READ,
        section=SECTION,
        label=_("Cluster NUMA monitoring"),
        url_name="monitoring",
        per_cluster=True,
        icon="server",
    ),
    Slot(
        kind="menu",
        order=300,
        permission=READ,
        section=SECTION,
        label=_("Containers"),
        url_name="containers",
        per_cluster=True,
        icon="box",
    ),
    Slot(
        kind="menu",
        order=400,
        permission=READ,
        section=SECTION,
        label=_("Planner"),
        url_name="planner",
        per_cluster=True,
        icon="topology-star-3",
    ),
    Slot(
        kind="menu",
        order=500,
        permission=READ,
        section=SECTION,
        label=_("Failures"),
        url_name="failures",
        per_cluster=True,
        icon="alert-triangle",
    ),
    Slot(
        kind="entry",
        order=100,
        permission=READ,
        label=_("Why is this application slow?"),
        url_name="containers",
        query="sort=-cost",
        per_cluster=True,
        icon="box",
    ),
    Slot(
        kind="entry",
        order=200,
        permission=READ,
        label=_("Where is it tight?"),
        url_name="monitoring",
        query="sort=-cpu_allocation",
        per_cluster=True,
        icon="server",
    ),
    Slot(
        kind="entry",
        order=400,
        permission=READ,
        label=_("Where would this pod go?"),
        url_name="planner",
        per_cluster=True,
        icon="topology-star-3",
    ),
    Slot(
        kind="entry",
        order=500,
        permission=READ,
        label=_("What was refused, and why?"),
        url_name="failures",
        per_cluster=True,
        icon="alert-triangle",
    ),
    Slot(
        kind="card",
        order=500,
        permission=READ,
        label=_("Failed admissions"),
        template="monitoring/parts/failures_card.html",
    ),
]
