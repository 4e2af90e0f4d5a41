"""numaweb's own numbers in Prometheus's format, served at /metrics. The default registry holds every room's numbers."""

from prometheus_client import Counter, Gauge, Histogram

from numaweb import __version__

BUILD = Gauge("numaweb_build_info", "Always 1; the label says which version runs.", ["version"])
BUILD.labels(version=__version__).set(1)
REQUESTS = Counter(
    "numaweb_http_requests", "Answered requests, by the name of the page.", ["view", "method", "status"]
)
SECONDS = Histogram(
    "numaweb_http_request_duration_seconds",
    "Time from a request to its answer.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
FAILURES = Counter("numaweb_http_exceptions", "Requests that ended in an unexpected error.", ["kind"])
DATABASE_ERRORS = Counter("numaweb_database_errors", "Requests or checks that failed at the database.")
SIGN_INS = Counter("numaweb_sign_ins", "Attempts to sign in.", ["result"])
REFUSALS = Counter("numaweb_refusals", "Requests that were refused.", ["reason"])
