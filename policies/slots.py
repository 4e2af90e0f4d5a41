"""What this room adds to the pages: menu entries of affinity policies and the audit log, the clean-up on the page of failed pods, rollouts on
the overview, policies and rollouts on pages of nodes."""

from django.utils.translation import gettext_lazy as _

from monitoring.slots import READ, SECTION, Slot

SLOTS = [
    Slot(
        kind="action",
        order=100,
        permission=READ,
        label=_("Clean up failed pods"),
        url_name="failures",
        template="policies/parts/cleanup_button.html",
    ),
    Slot(
        kind="card",
        order=100,
        permission=READ,
        label=_("Rollout"),
        template="policies/parts/rollout_card.html",
    ),
    Slot(
        kind="action",
        order=100,
        permission=READ,
        label=_("Affinity policies"),
        url_name="node",
        template="policies/parts/node_policy.html",
    ),
    Slot(
        kind="action",
        order=110,
        permission=READ,
        label=_("Rollouts"),
        url_name="node",
        template="policies/parts/node_rollouts.html",
    ),
    Slot(
        kind="entry",
        order=300,
        permission=READ,
        label=_("What happens if I change the policy?"),
        url_name="policies",
        per_cluster=True,
        icon="adjustments",
    ),
    Slot(
        kind="menu",
        order=350,
        permission=READ,
        section=SECTION,
        label=_("Affinity policies"),
        url_name="policies",
        per_cluster=True,
        icon="adjustments",
    ),
    Slot(
        kind="menu",
        order=900,
        permission="policies.view_auditentry",
        role="administrator",
        section=_("Administration"),
        label=_("Audit"),
        url_name="audit",
        icon="history",
    ),
]
