"""docker-compose.yml and build/Dockerfile have the right form; no container engine is needed to check that."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import servers, stack
from tests.servers import ROOT

COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = (ROOT / "build" / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
OURS = ("setup", "web", "worker", "beat", "watcher", "exporter")

every_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)


def test_it_follows_the_schema_of_compose() -> None:
    program = str(Path(sys.executable).with_name("check-jsonschema"))
    command = [program, "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_has_every_process_of_the_architecture() -> None:
    assert set(SERVICES) == {
        *("postgres", "redis", "setup", "web", "worker", "beat", "watcher", "exporter", "prometheus")
    }


@every_service
def test_it_gives_no_container_a_right_that_it_does_not_need(service: dict[str, Any]) -> None:
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert not service.get("privileged", False)
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["read_only"]
    assert service["mem_limit"]


@every_service
def test_it_mounts_the_machine_read_only(service: dict[str, Any]) -> None:
    binds = [volume for volume in service.get("volumes", []) if isinstance(volume, dict)]
    assert all(volume["read_only"] for volume in binds if volume["type"] == "bind")


@every_service
def test_it_knows_whether_each_process_works(service: dict[str, Any]) -> None:
    check = service["healthcheck"]
    ends_by_itself = service["restart"] == "no"
    assert check.get("disable", False) is ends_by_itself
    assert ends_by_itself or check["test"]


@every_service
def test_it_hands_secrets_over_as_files(service: dict[str, Any]) -> None:
    for name, value in service.get("environment", {}).items():
        secret = re.search(r"PASSWORD|SECRET|TOKEN|(DATABASE|REDIS)_URL", name)
        assert not secret or (name.endswith("_FILE") and value.startswith("/run/secrets/"))


@every_service
def test_it_names_the_version_of_every_image(service: dict[str, Any]) -> None:
    tag = service["image"].partition(":")[2]
    assert tag
    assert tag != "latest"


@pytest.mark.parametrize("name", [name for name in OURS if name != "exporter"])
def test_it_runs_our_processes_as_nobody_in_particular(name: str) -> None:
    assert SERVICES[name]["user"] == "10001:10001"


def test_it_opens_one_port() -> None:
    assert {name: each["ports"] for name, each in SERVICES.items() if "ports" in each} == {
        "web": ["30881:30881"]
    }


@pytest.mark.parametrize("name", OURS)
def test_it_builds_from_a_stage_that_exists(name: str) -> None:
    build = SERVICES[name]["build"]
    stage = re.search(rf"^FROM \S+ AS {build['target']}\n(.*?)(?=^FROM|\Z)", DOCKERFILE, re.M | re.S)
    assert stage is not None
    assert all(f"ARG {argument}=" in stage[1] for argument in build["args"])
    assert "USER 10001:10001" in stage[1]


def test_it_copies_only_what_the_repository_has() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M)
    assert copied
    assert not [path for line in copied for path in line.split() if not (ROOT / path).exists()]


def test_it_lets_the_build_see_what_it_copies() -> None:
    seen = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M)
    copied = [
        path for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M) for path in line.split()
    ]
    assert not [path for path in copied if not path.startswith(tuple(seen))]


def test_it_configures_prometheus_as_prometheus_likes_it() -> None:
    promtool = str(servers.program("promtool"))
    stack.call([promtool, "check", "config", str(ROOT / "build" / "compose" / "prometheus.yml")], ROOT)
