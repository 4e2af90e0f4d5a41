"""values.schema.json: a mistyped key is refused with its name, wherever it stands."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.deploy.helm import CHART, WEB, Helm, HelmError
from tests.servers import ROOT

FOLDERS = {"": CHART, f"{WEB}.": CHART / "charts" / WEB}
FREE = {"nodeSelector", "annotations", "labels", "matchLabels", "requests", "limits", "roles", "issuerRef"}
"""Maps whose keys are the user's; issuerRef is empty by default."""


def loaded(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for prefix, folder in FOLDERS.items():
        yield prefix, yaml.safe_load((folder / name).read_text(encoding="utf-8"))


def maps(values: dict[str, Any], path: str) -> Iterator[str]:
    """Every place of values.yaml where a key could be mistyped."""
    yield path
    for key, value in values.items():
        if isinstance(value, dict) and key not in FREE:
            yield from maps(value, f"{path}{key}.")


PLACES = [place for prefix, values in loaded("values.yaml") for place in maps(values, prefix)]


def test_every_mistyped_key_is_refused_by_its_name(helm: Helm) -> None:
    typos = [f"{place}mistyped{number}" for number, place in enumerate(PLACES)]
    with pytest.raises(HelmError) as refused:
        helm.template(dict.fromkeys((each for each in typos if not each.startswith(WEB)), 1))
    said = str(refused.value)
    with pytest.raises(HelmError) as refused:
        helm.template(dict.fromkeys((each for each in typos if each.startswith(WEB)), 1))
    said += str(refused.value)
    assert [each for each in typos if f"'{each.rpartition('.')[2]}'" not in said] == []
    assert len(typos) > 30


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (f"{WEB}.enableOauth", True, "enableOauth"),
        (f"{WEB}.service.type", "Nodeport", "/service/type"),
        (f"{WEB}.oauth.roles", {"admins": "root"}, "/oauth/roles/admins"),
        ("global.settings.NUMAWEB_COLECT_PERIOD", 2, "NUMAWEB_COLECT_PERIOD"),
        ("global.settings.NUMAWEB_SECRET_KEY", "x", "NUMAWEB_SECRET_KEY"),
        ("global.image.digest", "latest", "/global/image/digest"),
        ("worker.replicas", "two", "/worker/replicas"),
        ("worker.resources.limit", {"memory": "1Gi"}, "limit"),
        ("exporter.tls.issuerRef.nane", "x", "nane"),
        ("exporter.tolerations", [{"operater": "Exists"}], "operater"),
        ("exporter.kubeletDropIns", "etc/drop-ins", "/exporter/kubeletDropIns"),
        ("exporter.kubeletDropIns", "/etc/kubernetes", "/exporter/kubeletDropIns"),
        ("exporter.kubeletDropIns", "/etc/kubernetes/pki/", "/exporter/kubeletDropIns"),
        ("postgresql.persistence.size", "20 Gi", "/postgresql/persistence/size"),
    ],
)
def test_a_mistake_is_refused_with_its_place(helm: Helm, path: str, value: object, told: str) -> None:
    with pytest.raises(HelmError, match=told):
        helm.template({path: value})


def test_every_value_is_in_the_schema_and_the_other_way_round() -> None:
    schemas = dict(loaded("values.schema.json"))
    for prefix, values in loaded("values.yaml"):
        schema = schemas[prefix]
        own = {key: each for key, each in schema["properties"].items() if prefix or key != WEB}
        if prefix:
            own.pop("global")
        assert same_keys(values, {"properties": own}, schema["definitions"], prefix) == []


def same_keys(values: dict[str, Any], schema: dict[str, Any], shared: dict[str, Any], path: str) -> list[str]:
    schema = shared[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    known = schema.get("properties")
    if known is None or path.endswith(("settings.", "issuerRef.")):
        return []
    wrong = [f"{path}{key}" for key in set(known) ^ set(values)]
    for key, value in values.items():
        if isinstance(value, dict) and key in known:
            wrong += same_keys(value, known[key], shared, f"{path}{key}.")
    return wrong


def test_settings_are_those_of_the_documents_without_secrets_and_what_the_chart_says_itself() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    known = set(schema["properties"]["global"]["properties"]["settings"]["properties"])
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    documented = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `NUMAWEB_")}
    assert known <= set(documented)
    assert not [name for name in known if "or file" in documented[name] or "_FILE`" in documented[name]]
    left = {name for name in set(documented) - known if "or file" not in documented[name]}
    assert {
        name for name in left if not name.startswith("NUMAWEB_OIDC_") and "_FILE`" not in documented[name]
    } == {
        "NUMAWEB_STATE_DIR",  # a folder of the pod
        "NUMAWEB_LISTEN",  # the Service says where
        "NUMAWEB_PORT",
        "NUMAWEB_ALLOWED_HOSTS",  # values of the pages
        "NUMAWEB_TLS",
        "NUMAWEB_TRUSTED_PROXIES",
        "NUMAWEB_ADMIN_USER",  # setup.adminUser
        "NUMAWEB_CLEANUP",  # with the rights for it
        "NUMAWEB_ROLLOUTS",
        "NUMAWEB_NAMESPACE",  # the release's
        "NUMAWEB_APPLIER_IMAGE",  # exporter.image
        "NUMAWEB_KUBECONFIG",  # of make run
        "NUMAWEB_SIMULATED_NODES",
        "NUMAWEB_METRICS_TOKEN",  # a secret
        "NUMAWEB_NOTICE_CA",  # a file, for which there is no volume
        "NUMAWEB_STATIC_HASHED",  # the image says it
        "NUMAWEB_STATIC_ROOT",
        "NUMAWEB_COMMIT",
    }
