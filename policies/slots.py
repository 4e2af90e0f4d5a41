"""What this room adds to the pages: menu entries of affinity policies and the audit log, and the clean-up on the page of failed pods."""

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
        section=_("Administration"),
        label=_("Audit"),
        url_name="audit",
        icon="history",
    ),
]
