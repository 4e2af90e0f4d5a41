"""docs/prometheus: Prometheus' own tool accepts the files, and what belongs together fits together."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from numaagent import config
from tests import servers

FOLDER = servers.ROOT / "docs" / "prometheus"
EXPORTER = {"app": "numa-exporter"}


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def only(name: str, kind: str) -> dict[str, Any]:
    [found] = [document for document in documents(name) if document["kind"] == kind]
    return found


def promtool(*arguments: str, folder: Path = FOLDER) -> str:
    command = [str(servers.program("promtool")), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_accepts_the_direct_scrape_with_its_rules(tmp_path: Path) -> None:
    [whole] = documents("scrape-config.yaml")
    # Debian builds Prometheus without discovery in Kubernetes; the job's own part of it is compared below.
    whole["scrape_configs"][0].pop("kubernetes_sd_configs")
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(whole))
    shutil.copy(FOLDER / "rules.yaml", tmp_path)
    assert "SUCCESS: 1 rule files found" in promtool("check", "config", "prometheus.yml", folder=tmp_path)


def test_the_direct_scrape_is_the_documented_job() -> None:
    [job] = documents("scrape-config.yaml")[0]["scrape_configs"]
    assert job == {
        "job_name": "numa-exporter",
        "kubernetes_sd_configs": [{"role": "pod"}],
        "relabel_configs": [
            {"source_labels": ["__meta_kubernetes_pod_label_app"], "regex": "numa-exporter", "action": "keep"}
        ],
    }


def test_the_documentation_shows_the_job_as_it_is() -> None:
    [job] = documents("scrape-config.yaml")[0]["scrape_configs"]
    for language in ("en", "zh"):
        text = (FOLDER.parent / language / "prometheus.md").read_text(encoding="utf-8")
        blocks = [yaml.safe_load(block.partition("```")[0]) for block in text.split("```yaml\n")[1:]]
        assert {"scrape_configs": [job]} in blocks


def test_the_service_finds_the_exporter_at_its_port() -> None:
    service = only("servicemonitor.yaml", "Service")
    assert service["spec"]["selector"] == EXPORTER
    [port] = service["spec"]["ports"]
    assert port["targetPort"] == config.DEFAULT_PORT


def test_the_monitor_finds_the_service() -> None:
    service, monitor = (only("servicemonitor.yaml", kind) for kind in ("Service", "ServiceMonitor"))
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["namespaceSelector"] == {"any": True}
    [endpoint] = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["path"]) == (service["spec"]["ports"][0]["name"], "/metrics")
    assert (endpoint["scrapeTimeout"], endpoint["interval"]) == ("10s", "15s")


def test_both_ways_give_the_series_the_same_job() -> None:
    monitor = only("servicemonitor.yaml", "ServiceMonitor")
    service = only("servicemonitor.yaml", "Service")
    [job] = documents("scrape-config.yaml")[0]["scrape_configs"]
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == job["job_name"]


@pytest.mark.parametrize(
    ("file", "kind", "selector"),
    [
        ("servicemonitor.yaml", "ServiceMonitor", "serviceMonitorSelector"),
        ("prometheusrule.yaml", "PrometheusRule", "ruleSelector"),
    ],
)
def test_the_prometheus_selects_what_the_other_files_bring(file: str, kind: str, selector: str) -> None:
    prometheus = only("prometheus-operator.yaml", "Prometheus")
    labels = only(file, kind)["metadata"]["labels"]
    assert prometheus["spec"][selector]["matchLabels"].items() <= labels.items()


def test_the_prometheus_may_find_targets_and_nothing_else() -> None:
    role = only("prometheus-operator.yaml", "ClusterRole")
    allowed = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert allowed == {"services", "endpoints", "pods", "endpointslices"}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_the_prometheus_runs_as_the_account_that_has_the_role() -> None:
    account = only("prometheus-operator.yaml", "ServiceAccount")["metadata"]
    binding = only("prometheus-operator.yaml", "ClusterRoleBinding")
    prometheus = only("prometheus-operator.yaml", "Prometheus")
    [subject] = binding["subjects"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert binding["roleRef"]["name"] == only("prometheus-operator.yaml", "ClusterRole")["metadata"]["name"]
    assert prometheus["spec"]["serviceAccountName"] == account["name"]


def test_its_service_leads_to_it() -> None:
    # The operator labels the pods of a Prometheus with its name.
    service, prometheus = (only("prometheus-operator.yaml", kind) for kind in ("Service", "Prometheus"))
    assert service["spec"]["selector"] == {"prometheus": prometheus["metadata"]["name"]}
    assert service["spec"]["ports"][0]["targetPort"] == "web"


def test_the_rules_of_both_ways_are_the_same() -> None:
    rule = only("prometheusrule.yaml", "PrometheusRule")
    [plain] = documents("rules.yaml")
    assert rule["spec"] == plain


def test_the_alerts_speak_when_they_should_and_are_silent_otherwise() -> None:
    promtool("test", "rules", "tests.yaml", folder=servers.ROOT / "tests" / "services" / "prometheus")
