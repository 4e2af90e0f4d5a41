"""The Django app of this room."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _
from prometheus_client import REGISTRY

from monitoring.hot.counters import SharedCounts


class MonitoringConfig(AppConfig):
    name = "monitoring"
    verbose_name = _("Monitoring")

    def ready(self) -> None:
        REGISTRY.register(SharedCounts())
