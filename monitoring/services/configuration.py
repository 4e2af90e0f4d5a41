"""The one row of what administrators may set."""

from monitoring import selectors
from monitoring.models import Settings


def ensure_settings() -> Settings:
    """The row, made with its defaults where nobody has saved one yet."""
    row, _ = Settings.objects.get_or_create(
        pk=1, defaults={"busy_threshold": selectors.settings().busy_threshold}
    )
    return row
