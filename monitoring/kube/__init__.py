"""Reads a Kubernetes cluster through its API server: connections, lists, watches. Knows no table and writes nothing there."""
