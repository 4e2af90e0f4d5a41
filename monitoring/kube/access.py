"""What is needed to talk to one API server: its address, whom to trust, and who we are. And the ways to come by it.

A kubeconfig that somebody pasted is text of a stranger to this process: it may start no program, open no file, and lead to no address
that `monitoring.sources.address` refuses. A file that a person's own environment names may point to files beside it.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn

import msgspec
from django.utils.translation import gettext as _

from monitoring.kube import kubeconfig
from monitoring.kube.kubeconfig import AccessError, Cluster, Config, KubeconfigError, User
from monitoring.sources import address
from monitoring.sources.failures import SourceError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_TOKEN = re.compile(r"[\x21-\x7e]{1,65536}")


class Access(msgspec.Struct, frozen=True):
    """`server` is a base address without a slash at its end. `ca`, `certificate` and `key` are PEM; `ca` None trusts the CAs of this system.

    `token_file` is read again while it is used, since a ServiceAccount's token changes every hour. The struct can be encoded, so that
    it can be kept encrypted; its text form has no secret.
    """

    server: str
    ca: str | None = None
    token: str = ""
    token_file: str = ""
    certificate: str = ""
    key: str = ""
    tls_server_name: str = ""

    @property
    def by(self) -> str:
        """Who we are, without saying it: token-file, token, client-certificate or nobody."""
        if self.token_file or self.token:
            return "token-file" if self.token_file else "token"
        return "client-certificate" if self.certificate else "nobody"

    def __repr__(self) -> str:
        return f"Access({self.server!r}, by {self.by})"

    def __rich_repr__(self) -> NoReturn:
        raise NotImplementedError("it would show secrets")

    def tls(self) -> ssl.SSLContext | None:
        """A context for connections; None for http. Raises ssl.SSLError where a PEM text is no certificate or no key of it."""
        if not self.server.startswith("https:"):
            return None
        context = ssl.create_default_context(cadata=self.ca)
        if self.certificate:
            _present(context, self.certificate, self.key)
        return context


def in_cluster(folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> Access:
    """The API server of the cluster that this process is a pod of, as its ServiceAccount.

    Raises:
        AccessError: this is no pod, or it was given no ServiceAccount.
    """
    host, port = environment.get(HOST, ""), environment.get(PORT, "")
    if not host or not port:
        raise AccessError(HOST, _("it is not set, so this process runs in no pod: give a kubeconfig instead"))
    for name in ("token", "ca.crt"):
        if not (folder / name).is_file():
            raise AccessError(
                str(folder / name),
                _("there is no such file: set automountServiceAccountToken: true for the pod"),
            )
    shown = f"[{host}]" if ":" in host else host
    return Access(
        f"https://{shown}:{port}",
        _checked_ca(_read(folder / "ca.crt"), "ca.crt"),
        token_file=str(folder / "token"),
    )


def from_token(server: str, ca: str, token: str) -> Access:
    """A ServiceAccount's token that somebody pasted, with the CA's certificate (PEM; empty for the CAs of this system).

    Raises:
        KubeconfigError: with the field (server, ca, token) and the remedy.
    """
    if not token.strip():
        raise KubeconfigError("token", _("it is empty: make one with “kubectl create token”"))
    return Access(
        _checked_server(server.strip(), "server"),
        _checked_ca(ca, "ca") if ca.strip() else None,
        token=_checked_token(token, "token"),
    )


def from_kubeconfig(text: str, context: str = "") -> Access:
    """What a pasted kubeconfig says for a context (empty: its current one). Only the parts that this context names are looked at.

    Raises:
        KubeconfigError: it is unreadable, incomplete, or asks for a program, a file, a proxy or an unchecked server.
    """
    return _access(kubeconfig.read(text), context, None)


def from_file(path: Path, context: str = "") -> Access:
    """What a person's own kubeconfig says. It may name files, as seen from its folder; programs it may not start either.

    Raises:
        KubeconfigError: as from_kubeconfig, or a file cannot be read.
    """
    return _access(kubeconfig.read(_read(path)), context, path.absolute().parent)


# ---------------------------------------------------------------- a kubeconfig's parts


def _access(config: Config, context: str, folder: Path | None) -> Access:
    name = context or config.current_context
    if not name:
        raise KubeconfigError("current-context", _("it is empty: name the context to use"))
    chosen = next((each.context for each in config.contexts if each.name == name), None)
    if chosen is None:
        known = ", ".join(each.name for each in config.contexts[:20]) or "-"
        raise KubeconfigError(
            "contexts",
            _("there is no context “%(name)s”; there are: %(known)s") % {"name": name, "known": known},
        )
    cluster = next((each.cluster for each in config.clusters if each.name == chosen.cluster), None)
    if cluster is None:
        raise KubeconfigError(
            f"contexts[{name}].context.cluster",
            _("there is no cluster “%(name)s”") % {"name": chosen.cluster},
        )
    found = next((each for each in config.users if each.name == chosen.user), None)
    if chosen.user and found is None:
        raise KubeconfigError(
            f"contexts[{name}].context.user", _("there is no user “%(name)s”") % {"name": chosen.user}
        )
    user = (found and found.user) or User()
    at_cluster, at_user = f"clusters[{chosen.cluster}].cluster", f"users[{chosen.user}].user"
    _refuse_cluster(cluster, at_cluster)
    _refuse_user(user, at_user)
    files = _Files(folder)
    ca = files.text(
        cluster.certificate_authority_data, cluster.certificate_authority, at_cluster, "certificate-authority"
    )
    server = _checked_server(cluster.server, f"{at_cluster}.server")
    certificate = files.text(
        user.client_certificate_data, user.client_certificate, at_user, "client-certificate"
    )
    key = files.text(user.client_key_data, user.client_key, at_user, "client-key")
    _check_pair(certificate, key, at_user)
    token_file = files.path(user.token_file, f"{at_user}.tokenFile") if user.token_file else ""
    if not (user.token or token_file or certificate) and server.startswith("https:"):
        raise KubeconfigError(
            at_user, _("it has neither a token nor a client certificate: add the token of a ServiceAccount")
        )
    return Access(
        server,
        _checked_ca(ca, f"{at_cluster}.certificate-authority-data") if ca else None,
        # As for kubectl: a file wins over a token beside it.
        token="" if token_file else _checked_token(user.token, f"{at_user}.token"),
        token_file=token_file,
        certificate=certificate,
        key=key,
        tls_server_name=cluster.tls_server_name,
    )


def _refuse_cluster(cluster: Cluster, place: str) -> None:
    if cluster.insecure_skip_tls_verify:
        raise KubeconfigError(
            f"{place}.insecure-skip-tls-verify",
            _("numaweb talks to no server that it cannot verify: give certificate-authority-data instead"),
        )
    if cluster.proxy_url:
        raise KubeconfigError(
            f"{place}.proxy-url", _("numaweb uses no proxy: give an address that it reaches itself")
        )


def _refuse_user(user: User, place: str) -> None:
    instead = _("numaweb does not support it: use the token of a ServiceAccount instead")
    program = _("numaweb starts no programs: use the token of a ServiceAccount instead")
    refused = {
        "exec": (user.exec is not None, program),
        "auth-provider": (user.auth_provider is not None, program),
        "username": (bool(user.username), instead),
        "password": (bool(user.password), instead),
        "as": (bool(user.impersonate), instead),
        "as-uid": (bool(user.impersonate_uid), instead),
        "as-groups": (bool(user.impersonate_groups), instead),
    }
    for name, (there, text) in refused.items():
        if there:
            raise KubeconfigError(f"{place}.{name}", text)


class _Files(msgspec.Struct, frozen=True):
    """Texts that stand in a kubeconfig or, if it has a folder, in files that it names."""

    folder: Path | None

    def text(self, data: str, path: str, place: str, name: str) -> str:
        """As for kubectl: data wins over a file beside it, which is then not opened, and refused all the same in pasted text."""
        file = self.path(path, f"{place}.{name}") if path else ""
        if data:
            try:
                return base64.b64decode(data, validate=True).decode("ascii")
            except (binascii.Error, UnicodeDecodeError):
                raise KubeconfigError(
                    f"{place}.{name}-data", _("it is no text in base64: copy it again, in one line")
                ) from None
        return _read(Path(file), f"{place}.{name}") if file else ""

    def path(self, path: str, place: str) -> str:
        if self.folder is None:
            raise KubeconfigError(
                place,
                _(
                    "numaweb opens no files for a pasted kubeconfig: paste what “kubectl config view --minify --flatten --raw” prints"
                ),
            )
        return str(self.folder / path)


# ---------------------------------------------------------------- checks


def _read(path: Path, field: str = "") -> str:
    try:
        with path.open("rb") as file:
            found = file.read(kubeconfig.MOST_BYTES + 1)
        return found.decode()
    except UnicodeDecodeError:
        raise KubeconfigError(field or str(path), _("the file is no text")) from None
    except OSError as error:
        raise KubeconfigError(
            field or str(path),
            _("the file %(path)s cannot be read: %(cause)s") % {"path": path, "cause": error.strerror},
        ) from None


def _checked_server(text: str, field: str) -> str:
    try:
        found = address.parse(text)
    except SourceError as error:
        raise KubeconfigError(field, str(error)) from None
    literal = found.host if address.is_literal(found.host) else ""
    if literal and (reason := address.forbidden(literal, "apiserver")):
        raise KubeconfigError(field, reason)
    here = ip_address(literal).is_loopback if literal else found.host == "localhost"
    if found.scheme == "http" and not here:
        raise KubeconfigError(field, _("credentials would travel in the clear: use an address with https://"))
    return f"{found.scheme}://{found.authority}{found.path}"


def _checked_ca(pem: str, field: str) -> str:
    try:
        ssl.create_default_context(cadata=pem)
    except (ssl.SSLError, ValueError):
        raise KubeconfigError(field, _("it is no certificate in PEM form")) from None
    return pem


def _checked_token(token: str, field: str) -> str:
    token = token.strip()
    if token and not _TOKEN.fullmatch(token):
        raise KubeconfigError(
            field, _("a token has visible ASCII characters only: copy it again, in one line")
        )
    return token


def _check_pair(certificate: str, key: str, place: str) -> None:
    if bool(certificate) != bool(key):
        absent = "client-key-data" if certificate else "client-certificate-data"
        raise KubeconfigError(f"{place}.{absent}", _("certificate and key are needed together"))
    if certificate:
        try:
            _present(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key)
        except (ssl.SSLError, ValueError):
            raise KubeconfigError(
                f"{place}.client-certificate-data",
                _("certificate and key do not belong together, or are no PEM text without a password"),
            ) from None


def _present(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Python takes a certificate with its key from files only, so they are one that exists in memory (Linux)."""
    file = os.memfd_create("client", os.MFD_CLOEXEC)
    try:
        # An empty password, or OpenSSL would ask for one at the terminal.
        with os.fdopen(os.dup(file), "w", encoding="ascii") as writer:
            writer.write(f"{certificate}\n{key}\n")
        context.load_cert_chain(f"/proc/self/fd/{file}", password="")
    finally:
        os.close(file)
