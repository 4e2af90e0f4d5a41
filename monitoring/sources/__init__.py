"""Whom we ask: exporters on nodes, and Prometheus. Everything that comes from there is bounded and distrusted."""
