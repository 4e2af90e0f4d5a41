"""The search over all clusters."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from monitoring import selectors
from monitoring.views.base import Page

LONGEST = 200
MOST = 50


class Search(Page):
    """Clusters, nodes and containers by name."""

    template_name = "monitoring/search.html"
    title = _("Search")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        text = self.request.GET.get("q", "").strip()[:LONGEST]
        return super().get_context_data(text=text, hits=selectors.search(text, MOST), most=MOST, **kwargs)
