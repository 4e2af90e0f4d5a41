"""How one comes by what is needed to reach an API server, and what is refused on the way."""

import base64
import json
import os
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from django.utils import translation
from kubernetes import config as official_config
from kubernetes.client import Configuration

from monitoring.kube import access
from monitoring.kube.access import Access
from monitoring.kube.kubeconfig import AccessError, KubeconfigError
from tests.cluster.certificates import Authority, Pair

SERVER = "https://10.0.0.1:6443"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.client("somebody")


@pytest.fixture
def config(authority: Authority) -> dict[str, Any]:
    """A good one, as kubectl writes it: one context with a token, another with a certificate, a third that is no matter."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [
            {"name": "c", "cluster": {"server": SERVER, "certificate-authority-data": b64(authority.pem)}},
        ],
        "users": [
            {"name": "u", "user": {"token": "s3cret"}},
            {"name": "other", "user": {"exec": {"command": "x"}}},
        ],
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "default"}},
            {"name": "bad", "context": {"cluster": "c", "user": "other"}},
        ],
        "current-context": "main",
    }


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def text(config: Any) -> str:
    return yaml.safe_dump(config, sort_keys=False)


def refusal(content: str, context: str = "") -> KubeconfigError:
    with pytest.raises(KubeconfigError) as refused:
        access.from_kubeconfig(content, context)
    return refused.value


# ---------------------------------------------------------------- kubeconfig


def test_it_reads_the_current_context(config: dict[str, Any], authority: Authority) -> None:
    found = access.from_kubeconfig(text(config))
    assert found == Access(SERVER, authority.pem, token="s3cret")
    assert found.by == "token"
    assert access.from_kubeconfig(json.dumps(config)) == found


def test_it_reads_a_client_certificate_and_a_name_for_tls(config: dict[str, Any], pair: Pair) -> None:
    config["users"][0]["user"] = {
        "client-certificate-data": b64(pair.certificate),
        "client-key-data": b64(pair.key),
    }
    config["clusters"][0]["cluster"] |= {
        "tls-server-name": "kubernetes",
        "server": "https://API.example:443/k8s/c-1/",
    }
    found = access.from_kubeconfig(text(config), "main")
    assert (found.certificate, found.key) == (pair.certificate, pair.key)
    assert (found.server, found.tls_server_name) == ("https://api.example/k8s/c-1", "kubernetes")
    assert found.by == "client-certificate"
    tls = found.tls()
    assert tls is not None
    assert tls.verify_mode == ssl.CERT_REQUIRED
    assert tls.check_hostname


def test_it_reads_the_same_as_the_official_client(config: dict[str, Any], pair: Pair, tmp_path: Path) -> None:
    config["users"].append(
        {
            "name": "cert",
            "user": {"client-certificate-data": b64(pair.certificate), "client-key-data": b64(pair.key)},
        }
    )
    config["contexts"].append({"name": "by-cert", "context": {"cluster": "c", "user": "cert"}})
    file = tmp_path / "config"
    file.write_text(text(config))
    for context in ("main", "by-cert"):
        official = Configuration()
        official_config.load_kube_config(
            str(file), context, client_configuration=official, temp_file_path=str(tmp_path)
        )
        ours = access.from_kubeconfig(text(config), context)
        assert ours.server == official.host
        assert ours.ca == Path(official.ssl_ca_cert or "").read_text()
        assert official.verify_ssl
        assert [f"Bearer {ours.token}" if ours.token else None] == [official.api_key.get("BearerToken")]
        theirs = [official.cert_file, official.key_file]
        assert [ours.certificate, ours.key] == [Path(each).read_text() if each else "" for each in theirs]


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"exec": {"command": "/bin/sh", "args": ["-c", "id"], "apiVersion": "v1"}}, "exec"),
        ({"exec": {}}, "exec"),
        ({"auth-provider": {"name": "gcp", "config": {"cmd-path": "/bin/sh"}}}, "auth-provider"),
        ({"tokenFile": "/etc/shadow"}, "tokenFile"),
        ({"token": "t", "tokenFile": "token"}, "tokenFile"),
        ({"client-certificate": "/etc/a", "client-key-data": "eA=="}, "client-certificate"),
        ({"username": "admin", "password": "hunter2"}, "username"),
        ({"token": "t", "as": "system:admin"}, "as"),
        ({"token": "t", "as-groups": ["system:masters"]}, "as-groups"),
        ({"token": "a\nX-Remote-User: admin"}, "token"),
        ({"token": "schlüssel"}, "token"),
        ({"client-certificate-data": "eA=="}, "client-key-data"),
        ({"client-certificate-data": "%%%", "client-key-data": "eA=="}, "client-certificate-data"),
        ({"client-certificate-data": "eA==", "client-key-data": "eA=="}, "client-certificate-data"),
        ({}, ""),
    ],
)
def test_it_refuses_users_that_would_run_read_or_pretend(
    config: dict[str, Any], user: Any, field: str
) -> None:
    config["users"][0]["user"] = user
    refused = refusal(text(config))
    assert refused.field == ("users[u].user." + field).rstrip(".")
    assert "hunter2" not in str(refused)
    assert len(refused.text) > 20


def test_it_refuses_a_key_that_would_be_read_from_a_file(config: dict[str, Any], pair: Pair) -> None:
    config["users"][0]["user"] = {"client-certificate-data": b64(pair.certificate), "client-key": "key.pem"}
    assert refusal(text(config)).field == "users[u].user.client-key"


def test_it_refuses_a_key_that_belongs_to_another_or_wants_a_password(
    config: dict[str, Any], authority: Authority, pair: Pair
) -> None:
    other = authority.client("else").key
    for key in (other, other.replace("PRIVATE", "ENCRYPTED PRIVATE")):
        config["users"][0]["user"] = {
            "client-certificate-data": b64(pair.certificate),
            "client-key-data": b64(key),
        }
        refused = refusal(text(config))
        assert "do not belong together" in refused.text
        assert "BEGIN" not in str(refused)


@pytest.mark.parametrize(
    ("cluster", "field"),
    [
        ({"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify"),
        ({"certificate-authority": "/etc/ca.pem"}, "certificate-authority"),
        ({"proxy-url": "http://10.0.0.2:3128"}, "proxy-url"),
        ({"certificate-authority-data": "bm9uc2Vuc2U="}, "certificate-authority-data"),
        ({"certificate-authority-data": "not base64!"}, "certificate-authority-data"),
        ({"server": "http://10.0.0.1:8080"}, "server"),
        ({"server": "http://api.example"}, "server"),
        ({"server": "https://169.254.169.254/"}, "server"),
        ({"server": "https://[fd00:ec2::254]/"}, "server"),
        ({"server": "https://0.0.0.0:6443"}, "server"),
        ({"server": "https://user:pass@10.0.0.1"}, "server"),
        ({"server": "https://10.0.0.1/?x=1"}, "server"),
        ({"server": "unix:///run/api.sock"}, "server"),
        ({"server": ""}, "server"),
    ],
)
def test_it_refuses_servers_that_it_must_not_or_cannot_trust(
    config: dict[str, Any], cluster: Any, field: str
) -> None:
    config["clusters"][0]["cluster"] |= cluster
    assert refusal(text(config)).field == f"clusters[c].cluster.{field}"


def test_http_is_for_this_machine_only(config: dict[str, Any]) -> None:
    for server in ("http://127.0.0.1:8001", "http://[::1]:8001", "http://localhost:8001"):
        config["clusters"][0]["cluster"] = {"server": server}
        config["users"][0]["user"] = {}
        found = access.from_kubeconfig(text(config))
        assert (found.server, found.by, found.tls()) == (server, "nobody", None)


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"current-context": ""}, "current-context", "name the context"),
        ({"current-context": "gone"}, "contexts", "there are: main, bad"),
        ({"clusters": []}, "contexts[main].context.cluster", "no cluster “c”"),
        ({"users": []}, "contexts[main].context.user", "no user “u”"),
        ({"kind": "Secret"}, "kind", "no kubeconfig"),
        ({"clusters": {}}, "clusters", "array"),
        ({"users": [{"name": "u", "user": {"token": 12345}}]}, "users[0].user.token", "str"),
    ],
)
def test_it_names_the_field_and_the_fault(config: dict[str, Any], change: Any, field: str, says: str) -> None:
    refused = refusal(text(config | change))
    assert refused.field == field
    assert says in refused.text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "no kubeconfig"),
        ("[]", "no kubeconfig"),
        ("a: [", "line 2, column 1"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("a: 1\n---\nb: 2", "several documents"),
        ("[" * 50, "too much"),
        ("[" + "1," * 20_000 + "]", "too much"),
        ("x" * 600_000, "longer than 524288 bytes"),
        ("token: a\ntoken: b", "stands twice"),
        ("? [a]\n: 1", "no YAML"),
        ("when: 2026-99-99", "no YAML"),
        ("!!python/object/apply:os.system ['id']", "no YAML"),
    ],
)
def test_it_refuses_text_that_is_no_kubeconfig(content: str, says: str) -> None:
    assert says in refusal(content).text


def test_a_broken_text_shows_none_of_its_content(config: dict[str, Any]) -> None:
    broken = text(config).replace("token: s3cret", "token: {s3cret")
    assert "s3cret" not in str(refusal(broken))


def test_it_says_it_in_the_readers_language(config: dict[str, Any]) -> None:
    config["users"][0]["user"] = {"exec": {}}
    with translation.override("zh-hans"):
        assert "ServiceAccount" in refusal(text(config)).text
        assert "numaweb starts no programs" not in refusal(text(config)).text


# ---------------------------------------------------------------- a person's own file


def test_a_file_may_name_files_beside_it(
    config: dict[str, Any], authority: Authority, pair: Pair, tmp_path: Path
) -> None:
    for name, content in (("ca.pem", authority.pem), ("c.pem", pair.certificate), ("k.pem", pair.key)):
        (tmp_path / name).write_text(content)
    config["clusters"][0]["cluster"] = {"server": SERVER, "certificate-authority": "ca.pem"}
    config["users"][0]["user"] = {"client-certificate": "c.pem", "client-key": str(tmp_path / "k.pem")}
    (tmp_path / "config").write_text(text(config))
    found = access.from_file(tmp_path / "config")
    assert (found.ca, found.certificate, found.key) == (authority.pem, pair.certificate, pair.key)
    config["users"][0]["user"] = {"tokenFile": "token", "token": "older"}
    (tmp_path / "config").write_text(text(config))
    found = access.from_file(tmp_path / "config", "main")
    assert (found.token_file, found.token, found.by) == (str(tmp_path / "token"), "", "token-file")
    (tmp_path / "ca.pem").unlink()
    with pytest.raises(
        KubeconfigError, match=r"certificate-authority: the file .*ca.pem cannot be read: No such file"
    ):
        access.from_file(tmp_path / "config")


def test_a_file_starts_no_programs_either(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config").write_text(text(config))
    with pytest.raises(KubeconfigError, match="exec: numaweb starts no programs"):
        access.from_file(tmp_path / "config", "bad")
    with pytest.raises(KubeconfigError, match="cannot be read: No such file"):
        access.from_file(tmp_path / "nowhere")


# ---------------------------------------------------------------- in a pod, and by a token


def test_a_pod_finds_its_own_api_server(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text(authority.pem)
    for host, shown in (("10.96.0.1", "10.96.0.1"), ("fd00::1", "[fd00::1]")):
        found = access.in_cluster(
            tmp_path, {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
        )
        assert found == Access(f"https://{shown}:443", authority.pem, token_file=str(tmp_path / "token"))


def test_outside_of_a_pod_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="runs in no pod"):
        access.in_cluster(tmp_path, {})
    with pytest.raises(AccessError, match="automountServiceAccountToken") as refused:
        access.in_cluster(
            tmp_path, {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
        )
    assert refused.value.field == str(tmp_path / "token")


def test_a_token_may_be_pasted(authority: Authority) -> None:
    assert access.from_token(f" {SERVER}/ ", authority.pem, " s3cret\n") == Access(
        SERVER, authority.pem, "s3cret"
    )
    assert access.from_token(SERVER, "", "s3cret").ca is None
    for server, ca, token, field in (
        ("http://10.0.0.1", "", "t", "server"),
        (SERVER, "nonsense", "t", "ca"),
        (SERVER, "", " ", "token"),
        (SERVER, "", "a b", "token"),
    ):
        with pytest.raises(KubeconfigError) as refused:
            access.from_token(server, ca, token)
        assert refused.value.field == field


# ---------------------------------------------------------------- secrets


def test_its_text_holds_no_secret(config: dict[str, Any], pair: Pair) -> None:
    found = Access(SERVER, "CA", "s3cret", "", pair.certificate, pair.key)
    for shown in (repr(found), str(found), f"{found}", repr([found])):
        assert "s3cret" not in shown
        assert "PRIVATE" not in shown
        assert SERVER in shown
    # But it can be kept: encrypted, by whoever stores it.
    assert msgspec.json.decode(msgspec.json.encode(found), type=Access) == found


def test_a_key_never_lies_on_a_disk(
    config: dict[str, Any], pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    before = set(os.listdir("/proc/self/fd"))
    assert Access(SERVER, None, certificate=pair.certificate, key=pair.key).tls() is not None
    assert set(os.listdir("/proc/self/fd")) == before
