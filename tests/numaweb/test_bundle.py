"""A support bundle tells what is needed and no secret, wherever one may stand."""

import json
import stat
import tarfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring import services
from monitoring.models import Connection, Endpoint
from monitoring.models import Settings as Row
from numaweb import bundle, tokens
from numaweb.env import Env
from numaweb.models import ApiToken
from policies import audit
from policies.models import OrderKey

HUSH = "hush-7Qm3zK9w"
"""In every secret, and in nothing else."""
KUBECONFIG = f"""
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1"}}}}]
users: [{{name: u, user: {{token: {HUSH}-account, client-key-data: {HUSH}-key}}}}]
"""


def read(file: Path) -> dict[str, str]:
    with tarfile.open(file) as archive:
        found = {}
        for entry in archive.getmembers():
            handle = archive.extractfile(entry)
            assert handle is not None
            found[entry.name.removeprefix("numaweb-bundle/")] = handle.read().decode()
    return found


@pytest.fixture
def secrets(settings: Settings, administrator: User, tmp_path: Path) -> list[str]:
    """Everywhere that one can be: settings, environment, database, errors of others, a log. Those without HUSH in them."""
    environment = {
        "NUMAWEB_SECRET_KEY": f"{HUSH}-django" * 5,
        "NUMAWEB_DATABASE_URL": f"postgresql://numaweb:{HUSH}-db@db/numaweb",
        "NUMAWEB_OIDC_CLIENT_SECRET": f"{HUSH}-oidc",
        "NUMAWEB_MAIL_URL": f"smtps://numaweb:{HUSH}-mail@mail",
        "NUMAWEB_LISTEN": "192.0.2.7",
    }
    told = Env(environment)
    for name in environment:
        told.text(name, "") if name == "NUMAWEB_LISTEN" else told.secret(name, "")
    settings.NUMAWEB_ENVIRONMENT = told
    settings.SECRET_KEY = environment["NUMAWEB_SECRET_KEY"]
    settings.SECRET_KEY_FALLBACKS = [f"{HUSH}-older"]
    settings.REDIS_URL = f"redis://:{HUSH}-redis@127.0.0.1:1/0"
    settings.NUMAWEB_METRICS_TOKEN = f"{HUSH}-metrics"
    settings.NUMAWEB_NOTICE_SECRET = f"{HUSH}-notice"
    administrator.set_password(f"{HUSH}-password")
    administrator.save()
    token = ApiToken(user=administrator, name="script")
    bearer = tokens.fill(token)
    token.save()
    cluster = services.ensure_cluster(
        "east",
        "East",
        "kubernetes",
        [services.EndpointSpec("http://127.0.0.1:1", token=f"{HUSH}-exporter")],
    )
    Connection.objects.create(
        cluster=cluster,
        source="kubeconfig",
        kubeconfig=KUBECONFIG,
        token=f"{HUSH}-token",
        state="failing",
        error=f"401: {HUSH}-account is not valid",
    )
    Endpoint.objects.update(
        state="failing", error=f"proxy http://me:{HUSH}-proxy@proxy said: Bearer {HUSH}-exporter"
    )
    Row.objects.create(pk=1, prometheus_url="http://127.0.0.1:1", prometheus_token=f"{HUSH}-prometheus")
    key = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    OrderKey.objects.create(private=key.decode(), made=timezone.now())
    audit.record(
        audit.Event(
            action="sign-in",
            actor="ada",
            address="",
            target="account",
            result=audit.Result.REFUSED,
            detail=f"{HUSH}-typed into the wrong field",
        )
    )
    body = key.decode().splitlines()[1]
    (tmp_path / "web.log").write_text(
        f"first line\nAuthorization: Bearer {bearer}\nkey {body}\nredis://:{HUSH}-redis@h\n{HUSH}-metrics\nlast line\n"
    )
    return [bearer, body, administrator.password]


def test_no_secret_is_in_it(secrets: list[str], tmp_path: Path) -> None:
    call_command("bundle", str(tmp_path / "b.tar.gz"), "--log", str(tmp_path / "web.log"))
    files = read(tmp_path / "b.tar.gz")
    for name, text in files.items():
        assert HUSH not in text, (name, text[max(0, text.find(HUSH) - 200) :][:300])
        assert not [each for each in secrets if each in text], name
    log = next(text for name, text in files.items() if name.endswith("web.log"))
    assert log.startswith("first line\n")
    assert log.endswith("last line\n"), "what is no secret stays"


@pytest.mark.usefixtures("secrets")
def test_what_helps_is_in_it(tmp_path: Path) -> None:
    call_command("bundle", str(tmp_path / "b.tar.gz"))
    files = {name: json.loads(text) for name, text in read(tmp_path / "b.tar.gz").items() if ".json" in name}
    assert files["versions.json"]["libraries"]["Django"]
    assert files["settings.json"]["NUMAWEB_LISTEN"] == "192.0.2.7"
    assert files["settings.json"]["NUMAWEB_SECRET_KEY"] == "(set)"
    assert files["settings.json"]["NUMAWEB_SECRET_KEY_FILE"] == "(not set)"
    assert files["rows.json"]["monitoring.Endpoint"] == 1
    [exporter] = files["failures.json"]["exporters"]
    assert (exporter["cluster__slug"], exporter["url"]) == ("east", "http://127.0.0.1:1")
    assert exporter["error"] == "proxy http://(hidden)@proxy said: Bearer (hidden)"
    assert files["events.json"]["audit"][0]["action"] == "sign-in"
    assert {each["part"] for each in files["doctor.json"]} >= {"database", "exporters", "clusters"}


@pytest.mark.django_db
def test_only_its_owner_may_read_it_and_nothing_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    call_command("bundle", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(CommandError, match="exists already"):
        call_command("bundle", str(file))
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("bundle", str(tmp_path / "no" / "b.tar.gz"))


def test_of_a_long_log_the_end_is_kept_in_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "LOG_BYTES", 10)
    log = tmp_path / "l.log"
    log.write_text("one one one\ntwo two\nthree\n")
    assert bundle.end_of(log) == "three\n"
    assert bundle.end_of(tmp_path / "none.log") == "cannot be read: No such file or directory\n"
