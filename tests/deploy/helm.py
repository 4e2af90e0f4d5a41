"""The real helm, as a person uses it: the chart of this repository, values given by --set-json, a folder of its own for what helm keeps."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.servers import ROOT

CHART = ROOT / "charts" / "volcano-config-service"
WEB = "volcano-config-website"
RELEASE, NAMESPACE = "volcano-config-service", "numa-system"
"""The release as the documents name it; a namespace that is not the one of files/rbac."""
Values = Mapping[str, Any]
"""Paths of values with dots, and what they are."""
Object = dict[str, Any]
TIMEOUT_SECONDS = 180


class HelmError(Exception):
    """helm refused; the text is what it said."""


class Helm(NamedTuple):
    binary: Path
    home: Path
    kubeconfig: Path | None = None

    def run(self, *arguments: str) -> str:
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig or os.devnull),
        }
        command = [str(self.binary), *arguments]
        done = subprocess.run(
            command, cwd=self.home, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
        if done.returncode:
            raise HelmError(done.stderr + done.stdout)
        return done.stdout

    def template(
        self, values: Values | None = None, *, version: str = "1.37.2", apis: tuple[str, ...] = ()
    ) -> list[Object]:
        """The objects that an installation would make."""
        options = ["--namespace", NAMESPACE, "--kube-version", version, *settings(values or {})]
        options += [f"--api-versions={api}" for api in apis]
        return list(objects(self.run("template", RELEASE, str(CHART), *options)))

    def install(self, chart: Path, values: Values) -> str:
        return self._release("install", chart, values, "--create-namespace")

    def upgrade(self, chart: Path, values: Values) -> str:
        return self._release("upgrade", chart, values)

    def _release(self, what: str, chart: Path, values: Values, *more: str) -> str:
        options = ["--namespace", NAMESPACE, "--wait", "--wait-for-jobs", "--timeout", "120s"]
        return self.run(what, RELEASE, str(chart), *options, *more, *settings(values))


def settings(values: Values) -> list[str]:
    return [f"--set-json={path}={json.dumps(value)}" for path, value in values.items()]


def objects(text: str) -> Iterator[Object]:
    yield from (each for each in yaml.safe_load_all(text) if each)


def pod(thing: Object) -> Object | None:
    """The pod template of what makes pods."""
    made: Object | None = thing.get("spec", {}).get("template")
    return made if thing["kind"] in ("Deployment", "DaemonSet", "StatefulSet", "Job") else None


def pods(things: list[Object]) -> dict[str, Object]:
    """By the name of what makes them."""
    return {each["metadata"]["name"]: made for each in things if (made := pod(each))}


def containers(template: Object) -> list[Object]:
    return [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]


def named(things: list[Object], kind: str, name: str) -> Object:
    [found] = [each for each in things if each["kind"] == kind and each["metadata"]["name"] == name]
    return found
