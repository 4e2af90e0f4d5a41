"""What this room adds to the pages: the audit log's menu entry."""

from django.utils.translation import gettext_lazy as _

from monitoring.slots import Slot

SLOTS = [
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
