"""What administrators have set."""

from django.conf import settings as project

from monitoring.models import Settings


def settings() -> Settings:
    """The one row, or its defaults while nobody has saved it."""
    return Settings.objects.filter(pk=1).first() or Settings(
        pk=1, busy_threshold=project.NUMAWEB_OCCUPIED_PERCENT / 100
    )


def stale_after() -> float:
    """Age in seconds from which a node's data counts as stale: two rounds missed."""
    return 2 * float(project.NUMAWEB_COLLECT_PERIOD) + float(project.NUMAWEB_COLLECT_TIMEOUT)
