"""Names of cookies that pages set and tags read."""

LAST_CLUSTER = "numaweb_cluster"
"""Slug of the cluster that was looked at last: pages without a cluster lead back to it."""
