"""Kubeconfigs as text: everything in them, no paths, so that they can be pasted, written to a file or parsed."""

import base64
import ssl
import tempfile
from typing import Any, NamedTuple

import yaml

from tests.cluster.certificates import Pair

NAME = "test"
"""Of the cluster and of the context in every kubeconfig here."""


class Credentials(NamedTuple):
    """What a client needs, out of a kubeconfig."""

    server: str
    context: ssl.SSLContext
    token: str


def text(server: str, authority: str, user: str, proof: Pair | str) -> str:
    """A kubeconfig for one user; `proof` is a client certificate or a bearer token."""
    known: dict[str, str] = (
        {"token": proof}
        if isinstance(proof, str)
        else {"client-certificate-data": _encoded(proof.certificate), "client-key-data": _encoded(proof.key)}
    )
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": NAME,
                    "cluster": {"server": server, "certificate-authority-data": _encoded(authority)},
                }
            ],
            "users": [{"name": user, "user": known}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": user}}],
            "current-context": NAME,
        },
        sort_keys=False,
    )


def credentials(kubeconfig: str) -> Credentials:
    """Reads what `text` wrote."""
    content: dict[str, Any] = yaml.safe_load(kubeconfig)
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
    if "client-key-data" in user:
        # Python reads client certificates from files only.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            file.flush()
            context.load_cert_chain(file.name)
    return Credentials(cluster["server"], context, user.get("token", ""))


def _encoded(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode()
