"""The always-on program: reads the node and answers `/metrics`, `/v1/snapshot` and `/healthz`. It changes nothing."""
