"""What this room adds to the pages: the audit log's menu entry, and the clean-up of failed pods on the page that lists them."""

from django.utils.translation import gettext_lazy as _

from monitoring.slots import Slot

SLOTS = [
    Slot(
        kind="action",
        order=100,
        permission="monitoring.view_cluster",
        label=_("Clean up failed pods"),
        url_name="failures",
        template="policies/parts/cleanup_button.html",
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
