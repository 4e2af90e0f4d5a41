"""What the chart renders, over a matrix of values and two versions of Kubernetes."""

import re
from typing import Any

import pytest
import yaml

from numaagent import config
from tests.deploy import matrix
from tests.deploy.helm import (
    CHART,
    NAMESPACE,
    WEB,
    Helm,
    HelmError,
    Object,
    containers,
    named,
    objects,
    pods,
    settings,
)
from tests.servers import ROOT

VERSIONS = ("1.21.0", "1.37.2")
ALL = {**matrix.CASES, **matrix.FOREIGN}
SETTINGS = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "settings.md").read_text(encoding="utf-8"), re.M)

every_case = pytest.mark.parametrize("values", ALL.values(), ids=ALL)


@pytest.fixture(scope="module")
def defaults(helm: Helm) -> list[Object]:
    return helm.template()


@every_case
def test_it_has_nothing_that_helm_lint_complains_of(helm: Helm, values: dict[str, Any]) -> None:
    said = helm.run("lint", "--strict", str(CHART), *settings(values))
    assert "0 chart(s) failed" in said


@every_case
@pytest.mark.parametrize("version", VERSIONS)
def test_every_pod_is_bounded_hardened_and_finds_what_it_mounts(
    helm: Helm, values: dict[str, Any], version: str
) -> None:
    things = helm.template(values, version=version)
    there = {each["metadata"]["name"] for each in things if each["kind"] == "Secret"}
    given = {"db", "redis", "key", "orders", "oauth", "mail", "numa-exporter-tls"}
    assert len({(each["kind"], each["metadata"]["name"]) for each in things}) == len(things)
    for name, template in pods(things).items():
        spec = template["spec"]
        assert spec.get("automountServiceAccountToken") is not None, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        volumes = {each["name"] for each in spec.get("volumes", [])}
        claims = {"data"} if name in ("numaweb-postgresql", "numaweb-redis") else set()
        for container in containers(template):
            rights = container["securityContext"]
            assert rights["capabilities"] == {"drop": ["ALL"]}, name
            assert rights["readOnlyRootFilesystem"], name
            assert not rights["allowPrivilegeEscalation"], name
            assert container["resources"]["limits"]["memory"], name
            assert {each["name"] for each in container.get("volumeMounts", [])} <= volumes | claims, name
            for variable in container.get("env", []):
                assert variable["name"] in [*SETTINGS, *file_settings(), *POSTGRES], variable
        assert secrets_of(spec) <= there | given, name


POSTGRES = ("POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD_FILE", "PGDATA")


def file_settings() -> list[str]:
    """Where the documents say "or file", the variable has a second name."""
    return [f"{name}_FILE" for name in SETTINGS]


def secrets_of(spec: Object) -> set[str]:
    found = {each["secret"]["secretName"] for each in spec.get("volumes", []) if "secret" in each}
    for volume in spec.get("volumes", []):
        found |= {part["secret"]["name"] for part in volume.get("projected", {}).get("sources", [])}
    return found


@pytest.mark.parametrize("file", ["docker-compose.yml"])
def test_processes_have_the_environment_of_compose(defaults: list[Object], file: str) -> None:
    web = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["services"]["web"]["environment"]
    [container] = pods(defaults)["numaweb-web"]["spec"]["containers"]
    ours = {each["name"] for each in container["env"]}
    # Compose brings a Prometheus; a cluster has one, or none, and hosts are named where TLS is.
    assert set(web) - ours == {"NUMAWEB_PROMETHEUS_URL", "NUMAWEB_ALLOWED_HOSTS"}


def test_the_pages_are_at_node_port_30881(defaults: list[Object]) -> None:
    service = named(defaults, "Service", "numaweb")
    assert service["spec"]["type"] == "NodePort"
    assert service["spec"]["ports"] == [
        {"name": "http", "port": 30881, "targetPort": "http", "nodePort": 30881}
    ]
    outside = [each for each in defaults if each["kind"] == "Service" and each["spec"].get("type")]
    assert outside == [service]


def test_prometheus_finds_the_exporter_and_one_port(defaults: list[Object]) -> None:
    template = pods(defaults)["numa-exporter"]
    [container] = template["spec"]["containers"]
    assert template["metadata"]["labels"]["app"] == "numa-exporter"
    assert [port["containerPort"] for port in container["ports"]] == [config.DEFAULT_PORT]


def test_the_exporter_sees_drop_ins_of_another_folder_and_cannot_write_there(helm: Helm) -> None:
    folder = "/etc/kubernetes/kubelet.conf.d"
    spec = pods(helm.template({"exporter.kubeletDropIns": folder}))["numa-exporter"]["spec"]
    [volume] = [each for each in spec["volumes"] if each.get("hostPath", {}).get("path") == folder]
    [mount] = [each for each in spec["containers"][0]["volumeMounts"] if each["name"] == volume["name"]]
    assert (mount["mountPath"], mount["readOnly"]) == (f"/host{folder}", True)
    assert volume["hostPath"]["type"] == "Directory"  # nothing is made on the host


def test_the_exporter_is_the_one_of_the_documents(defaults: list[Object]) -> None:
    """docs/kubernetes has it for who takes no chart; the chart adds its token, its account and where it may run."""
    text = (ROOT / "docs" / "kubernetes" / "numa-exporter.yaml").read_text(encoding="utf-8")
    plain = pods(list(objects(text)))["numa-exporter"]["spec"]
    ours = pods(defaults)["numa-exporter"]["spec"]
    [theirs], [container] = plain["containers"], ours["containers"]
    assert container["args"] == theirs["args"]
    assert container["resources"] == theirs["resources"]
    volumes = [each for each in ours["volumes"] if each["name"] != "token"]
    assert volumes == plain["volumes"]
    assert [each for each in container["volumeMounts"] if each["name"] != "token"] == theirs["volumeMounts"]
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


def test_setup_is_no_hook_at_an_installation_and_one_at_an_upgrade(
    helm: Helm, defaults: list[Object]
) -> None:
    assert "annotations" not in named(defaults, "Job", "numaweb-setup")["metadata"]
    said = helm.run("template", "r", str(CHART), "--is-upgrade", "--show-only", "templates/setup.yaml")
    hook = named(list(objects(said)), "Job", "numaweb-upgrade")
    assert hook["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    assert hook["spec"]["template"]["spec"]["containers"][0]["command"][:3] == [
        "python",
        "manage.py",
        "setup",
    ]


def test_rights_that_change_a_cluster_are_off(defaults: list[Object]) -> None:
    roles = {each["metadata"]["name"] for each in defaults if each["kind"] in ("ClusterRole", "Role")}
    assert roles == {"numaweb-watcher"}
    tokens = {name for name, each in pods(defaults).items() if each["spec"]["automountServiceAccountToken"]}
    assert tokens == {"numaweb-watcher"}


def test_only_who_signs_orders_sees_their_key(helm: Helm) -> None:
    made = pods(helm.template({"global.rollouts.enabled": True}))
    who = {name for name, each in made.items() if "numaweb-order-key" in secrets_of(each["spec"])}
    assert who == {"numaweb-worker", "numaweb-web"}


@pytest.mark.parametrize("switch", [True, False])
def test_the_consoles_switch_is_refused_instead_of_pretended(helm: Helm, switch: bool) -> None:
    with pytest.raises(HelmError, match="openFuyao: true is not supported by this version"):
        helm.template({**(matrix.OAUTH if switch else {}), f"{WEB}.openFuyao": True})


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({f"{WEB}.enableOAuth": True}, "needs oauth.url, oauth.clientId, oauth.existingSecret"),
        ({f"{WEB}.tls.enabled": True}, "tls.enabled needs hosts"),
    ],
)
def test_half_a_switch_is_refused_with_what_is_missing(helm: Helm, values: dict[str, Any], told: str) -> None:
    with pytest.raises(HelmError, match=re.escape(told)):
        helm.template(values)


def test_a_cluster_that_is_too_old_is_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match=r"requires kubeVersion: >=1\.21"):
        helm.template(version="1.20.15")


def test_sign_in_by_a_provider_is_what_numaweb_reads(helm: Helm) -> None:
    [container] = pods(helm.template(matrix.OAUTH))["numaweb-web"]["spec"]["containers"]
    told = {each["name"]: each.get("value") for each in container["env"] if "OIDC" in each["name"]}
    assert told == {
        "NUMAWEB_OIDC_URL": "https://id.example.org",
        "NUMAWEB_OIDC_NAME": "OpenID Connect",
        "NUMAWEB_OIDC_CLIENT_ID": "numaweb",
        "NUMAWEB_OIDC_CLIENT_SECRET_FILE": "/run/secrets/oauth/client_secret",
        "NUMAWEB_OIDC_SCOPES": "openid,profile,email,groups",
        "NUMAWEB_OIDC_GROUPS_CLAIM": "groups",
        "NUMAWEB_OIDC_ROLES": "admins=administrator,all=viewer",
    }


def test_setup_makes_the_tables_of_sign_in_by_a_provider(helm: Helm) -> None:
    """Else web would wait for them for ever."""
    made = pods(helm.template(matrix.OAUTH))
    told = [
        {each["name"] for each in made[name]["spec"]["containers"][0]["env"] if "OIDC" in each["name"]}
        for name in ("numaweb-web", "numaweb-setup")
    ]
    assert told[0] - told[1] == {"NUMAWEB_OIDC_CLIENT_SECRET_FILE"}
    assert len(told[1]) == 6


def test_every_setting_is_text_that_numaweb_understands(helm: Helm) -> None:
    [container] = pods(helm.template(matrix.CASES["settings"]))["numaweb-worker"]["spec"]["containers"]
    told = {each["name"]: each.get("value") for each in container["env"]}
    assert told["NUMAWEB_COLLECT_BYTES"] == "2097152"
    assert told["NUMAWEB_TIME_ZONE"] == "Asia/Shanghai"
    assert container["envFrom"] == [{"secretRef": {"name": "mail"}}]


def test_every_image_comes_from_the_mirror(helm: Helm) -> None:
    made = pods(helm.template(matrix.CASES["offline"]))
    images = {container["image"] for each in made.values() for container in containers(each)}
    assert all(image.startswith("mirror.example.org/k8s/") for image in images)
    assert "mirror.example.org/k8s/numa-exporter@sha256:" + "0" * 64 in images
    assert "mirror.example.org/k8s/library/postgres:17" in images
    for name, each in made.items():
        assert each["spec"]["imagePullSecrets"] == [{"name": "mirror"}], name


def test_appliers_pull_with_the_same_secret(helm: Helm) -> None:
    """Their Jobs name none, so their account has to."""
    account = named(helm.template(matrix.CASES["offline"]), "ServiceAccount", "numaweb-applier")
    assert account["imagePullSecrets"] == [{"name": "mirror"}]


def test_only_machines_of_a_built_architecture_are_chosen(helm: Helm) -> None:
    for name, each in pods(helm.template(matrix.CASES["placed"])).items():
        affinity = each["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [term] = affinity["nodeSelectorTerms"]
        assert term["matchExpressions"] == [
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
        ], name


TALKS = {
    "numaweb-postgresql": ({"web", "worker", "beat", "watcher", "setup", "connect"}, 5432, False),
    "numaweb-redis": ({"web", "worker", "beat", "watcher", "setup", "connect"}, 6379, False),
    "numa-exporter": ({"web", "worker"}, 9797, False),
    "numaweb-web": (None, 30881, True),
    "numaweb-background": (set[str](), None, True),
}
"""Who is asked by which of our parts (None = by everybody), at which port, and whether it may ask others."""


def test_only_who_must_talk_talks(defaults: list[Object]) -> None:
    policies = [each for each in defaults if each["kind"] == "NetworkPolicy"]
    assert {each["metadata"]["name"] for each in policies} == set(TALKS)
    covered: set[str] = set()
    for policy in policies:
        who, port, asks = TALKS[policy["metadata"]["name"]]
        spec = policy["spec"]
        assert ("Egress" not in spec["policyTypes"]) is asks
        assert spec.get("egress", []) == []
        asked = [rule for rule in spec["ingress"] for rule in rule.get("from", [])]
        parts = {
            value
            for peer in asked
            for each in peer.get("podSelector", {}).get("matchExpressions", [])
            for value in each["values"]
        }
        assert parts == (who or set())
        assert [each["port"] for rule in spec["ingress"] for each in rule["ports"]] == (
            [port] if port else []
        )
        covered |= selected(spec["podSelector"], defaults)
    assert covered == set(pods(defaults))


def selected(selector: Object, things: list[Object]) -> set[str]:
    return {name for name, each in pods(things).items() if matches(selector, each["metadata"]["labels"])}


def matches(selector: Object, labels: dict[str, str]) -> bool:
    equal = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return equal and all(
        labels[each["key"]] in each["values"] for each in selector.get("matchExpressions", [])
    )


def test_every_selector_finds_its_own_pods_and_no_others(defaults: list[Object]) -> None:
    for each in defaults:
        if each["kind"] in ("Deployment", "StatefulSet", "DaemonSet"):
            assert selected(each["spec"]["selector"], defaults) == {each["metadata"]["name"]}
    services = {
        each["metadata"]["name"]: selected({"matchLabels": each["spec"]["selector"]}, defaults)
        for each in defaults
        if each["kind"] == "Service"
    }
    assert services == {
        "numaweb": {"numaweb-web"},
        "numa-exporter": {"numa-exporter"},
        "numaweb-postgresql": {"numaweb-postgresql"},
        "numaweb-redis": {"numaweb-redis"},
    }


@pytest.mark.parametrize(("version", "known"), [("1.26.0", False), ("1.27.0", True)])
def test_a_newer_field_is_left_out_where_it_is_not_known(helm: Helm, version: str, known: bool) -> None:
    budgets = [each for each in helm.template(version=version) if each["kind"] == "PodDisruptionBudget"]
    assert {each["metadata"]["name"] for each in budgets} == {
        "numaweb-web",
        "numaweb-worker",
        "numaweb-watcher",
    }
    assert all(("unhealthyPodEvictionPolicy" in each["spec"]) is known for each in budgets)


def test_one_replica_has_no_budget_that_would_hold_a_drain_up(helm: Helm) -> None:
    things = helm.template(matrix.CASES["one-of-each"])
    assert not [each for each in things if each["kind"] == "PodDisruptionBudget"]


@pytest.mark.parametrize(
    ("served", "version"), [((), "v1"), (("gateway.networking.k8s.io/v1beta1",), "v1beta1")]
)
def test_a_route_has_the_version_that_is_served(helm: Helm, served: tuple[str, ...], version: str) -> None:
    route = named(helm.template(matrix.FOREIGN["gateway"], apis=served), "HTTPRoute", "numaweb")
    assert route["apiVersion"] == f"gateway.networking.k8s.io/{version}"


def test_certificates_are_of_the_issuer_and_of_the_names_that_are_asked_for(helm: Helm) -> None:
    things = helm.template(matrix.FOREIGN["cert-manager"])
    names = {
        each["metadata"]["name"]: (each["spec"]["dnsNames"], each["spec"]["issuerRef"]["name"])
        for each in things
        if each["kind"] == "Certificate"
    }
    service = f"numa-exporter.{NAMESPACE}.svc"
    assert names == {"numaweb": (["numa.example.org"], "ours"), "numa-exporter": ([service], "ours")}
    connect = pods(things)["numaweb-connect-1"]["spec"]["containers"][0]["command"]
    assert connect[connect.index("--exporter-name") + 1] == service


def test_the_operator_gets_the_rules_and_the_monitor_of_the_documents(helm: Helm) -> None:
    things = helm.template(matrix.FOREIGN["prometheus-operator"])
    rules = yaml.safe_load((ROOT / "docs/prometheus/rules.yaml").read_text(encoding="utf-8"))
    assert named(things, "PrometheusRule", "numa-exporter")["spec"] == rules
    [theirs] = [
        each
        for each in objects((ROOT / "docs/prometheus/servicemonitor.yaml").read_text(encoding="utf-8"))
        if each["kind"] == "ServiceMonitor"
    ]
    ours = named(things, "ServiceMonitor", "numa-exporter")
    assert ours["metadata"]["labels"]["release"] == "prom"
    for field in ("selector", "jobLabel"):
        assert ours["spec"][field] == theirs["spec"][field]
    assert [each["port"] for each in ours["spec"]["endpoints"]] == ["metrics"]


def test_both_charts_are_found_as_extensions_and_have_one_version() -> None:
    charts = [
        yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))
        for folder in (CHART, CHART / "charts" / WEB)
    ]
    assert all("openfuyao-extension" in each["keywords"] for each in charts)
    assert len({(each["version"], each["appVersion"], each["kubeVersion"]) for each in charts}) == 1
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    tags = {values["global"]["image"]["tag"], values["exporter"]["image"]["tag"]}
    assert tags == {charts[0]["appVersion"]}
    assert charts[0]["dependencies"] == [{"name": WEB, "version": charts[0]["version"]}]


def test_the_two_switches_are_the_subcharts_alone() -> None:
    """A parent's value would silently win over the file that the documents tell people to edit."""
    parent = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    child = yaml.safe_load((CHART / "charts" / WEB / "values.yaml").read_text(encoding="utf-8"))
    assert WEB not in parent
    assert (child["enableOAuth"], child["openFuyao"]) == (False, False)
