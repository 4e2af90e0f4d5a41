"""How an API server is reached, as an administrator or the environment said it."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from monitoring.kube import access
from monitoring.kube.access import Access
from monitoring.kube.kubeconfig import AccessError
from monitoring.models import Connection
from monitoring.models.sealed import Unreadable

Source = Connection.Source
CREDENTIALS = "renew-credentials"
SEALED = "enter-credentials"


def access_of(connection: Connection) -> Access:
    """Raises AccessError with the field and the remedy."""
    for field, secret in (("kubeconfig", connection.kubeconfig), ("token", connection.token)):
        if isinstance(secret, Unreadable):
            raise AccessError(field, _("it was encrypted with another secret key: enter it again"))
    match connection.source:
        case Source.IN_CLUSTER:
            return access.in_cluster()
        case Source.FILE:
            return access.from_file(Path(settings.NUMAWEB_KUBECONFIG), connection.context)
        case Source.TOKEN:
            return access.from_token(connection.server, connection.ca, connection.token)
        case _:
            return access.from_kubeconfig(connection.kubeconfig, connection.context)
