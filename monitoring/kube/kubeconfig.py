"""The kubeconfig format, as far as it is read: text in, typed values out, bounded, nothing opened and nothing started.

The official client's loader is not used here: it runs `exec` plugins and writes keys to temporary files, and what we want of the
format is a table of names. That both read the same of the same file is a test.
"""

from __future__ import annotations

import yaml
from django.utils.translation import gettext as _
from msgspec import Struct, ValidationError, convert, field
from yaml.events import AliasEvent, DocumentStartEvent, NodeEvent
from yaml.nodes import MappingNode, Node, ScalarNode

MOST_BYTES = 512 * 1024
MOST_NODES = 10_000
MOST_DEPTH = 20


class AccessError(Exception):
    """Cannot be used to reach an API server. `field` is where the fault stands, `text` what it is and what to do, in the
    reader's language; neither holds a secret."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}" if field else text)
        self.field = field
        self.text = text


class KubeconfigError(AccessError):
    """A kubeconfig that is unreadable or asks for what numaweb does not do."""


class Cluster(Struct, rename="kebab"):
    """client-go 0.37, tools/clientcmd/api/v1/types.go, as are the others."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class User(Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    impersonate: str = field(default="", name="as")
    impersonate_uid: str = field(default="", name="as-uid")
    impersonate_groups: list[str] = field(default_factory=list, name="as-groups")
    username: str = ""
    password: str = ""
    auth_provider: dict[str, object] | None = None
    exec: dict[str, object] | None = None


class Context(Struct):
    cluster: str = ""
    user: str = ""


class NamedCluster(Struct):
    name: str
    cluster: Cluster


class NamedUser(Struct):
    name: str
    user: User | None = None


class NamedContext(Struct):
    name: str
    context: Context


class Config(Struct, rename="kebab"):
    clusters: list[NamedCluster]
    contexts: list[NamedContext]
    users: list[NamedUser] = []
    current_context: str = ""


def read(text: str) -> Config:
    """Raises KubeconfigError."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise KubeconfigError("", _("the text is longer than %(most)d bytes") % {"most": MOST_BYTES})
    try:
        _check_shape(text)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
        _check_keys(node)
        value = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise KubeconfigError("", _unreadable(error)) from None
    except (ValueError, OverflowError, TypeError, RecursionError):
        # A date that is none, a key that is a list: PyYAML lets Python's own errors through.
        raise KubeconfigError("", _("this is no YAML that can be read")) from None
    if not isinstance(value, dict) or value.get("kind", "Config") != "Config":
        raise KubeconfigError(
            "kind",
            _("this is no kubeconfig: paste what “kubectl config view --minify --flatten --raw” prints"),
        )
    try:
        return convert(value, Config)
    except ValidationError as error:
        # The words name fields and types, never a value.
        what, _at, place = str(error).partition(" - at `$.")
        raise KubeconfigError(
            place.rstrip("`"), _("it is not of the right kind: %(what)s") % {"what": what}
        ) from None


def _check_shape(text: str) -> None:
    """Refuses what would be dear to build. A kubeconfig has no use for anchors, so there are none."""
    depth = nodes = documents = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += isinstance(event, NodeEvent)
        documents += isinstance(event, DocumentStartEvent)
        if isinstance(event, AliasEvent):
            raise KubeconfigError("", _("aliases (*name) are not read: write the text out"))
        if depth > MOST_DEPTH or nodes > MOST_NODES:
            raise KubeconfigError(
                "", _("it holds too much: leave one cluster, one user and one context in it")
            )
        if documents > 1:
            raise KubeconfigError("", _("it has several documents: leave one"))


def _check_keys(root: Node | None) -> None:
    """A key that stands twice: readers disagree which one counts, so neither does."""
    if isinstance(root, MappingNode):
        seen: set[str] = set()
        for key, value in root.value:
            name = key.value if isinstance(key, ScalarNode) else ""
            if name in seen:
                raise KubeconfigError(str(name)[:80], _("it stands twice: leave one"))
            seen.add(name)
            _check_keys(value)
    elif isinstance(root, yaml.SequenceNode):
        for each in root.value:
            _check_keys(each)


def _unreadable(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return _("this is no YAML that can be read")
    # Where, and not what: the text around it may be a key.
    return _("this is no YAML that can be read: see line %(line)d, column %(column)d") % {
        "line": mark.line + 1,
        "column": mark.column + 1,
    }
