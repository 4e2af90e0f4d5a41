"""A real Kubernetes control plane on this machine: etcd, API server, controllers, scheduler, and kwok in the place of kubelets.

For conftest files, benchmarks and `make cluster`. Everything listens on free ports of 127.0.0.1, keeps its state and logs in one folder, and
ends with its block or with our process.

    with ControlPlane(programs.control_plane(), folder) as plane:
        plane.api.apply(things.node("a"))
        plane.apiserver.kill()
        plane.apiserver.start()
"""

import contextlib
import os
import shutil
import signal
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import pytest

from tests import servers
from tests.cluster import kubeconfig
from tests.cluster.api import Api, ApiError
from tests.cluster.certificates import Authority
from tests.cluster.commandlines import ADMINISTRATORS, CONTROLLERS, SCHEDULER, Layout
from tests.cluster.programs import Programs
from tests.servers import Server

DEFINITIONS = Path(__file__).parent / "definitions"
"""Custom resource definitions of Volcano and of the topology exporters, in our own words."""
TOKEN_SECONDS = 3600
PATIENCE_SECONDS = 60.0
"""How long one step of a control plane may take; it takes seconds, on a machine that does nothing else."""


class ControlPlane:
    """The five programs, each a `Server` that may be killed and started again at the same port."""

    def __init__(
        self, programs: Programs, folder: Path, *, lease_seconds: int = 40, address: str = "127.0.0.1"
    ) -> None:
        """`folder` is empty and ours alone; thousands of nodes want longer leases, or renewing them is all that kwok does. `address`: where this
        machine's API server listens, for nodes that are not on loopback."""
        layout = self._layout = Layout(folder, address)
        self.folder, self.url = folder, layout.url
        self.kubeconfig_file = layout.kubeconfig_file("administrator", [ADMINISTRATORS])
        self.api = Api(self.kubeconfig_file.read_text())
        """As administrator."""
        self.etcd = self._server(programs.etcd, layout.etcd(), self._etcd_ready)
        self.apiserver = self._server(programs.apiserver, layout.apiserver(), self._apiserver_ready)
        self.controllers = self._server(
            programs.controllers, layout.controllers(), healthy("https", layout.controllers_port)
        )
        self.scheduler = self._server(
            programs.scheduler, layout.scheduler(), healthy("https", layout.scheduler_port)
        )
        self.kwok = self._server(programs.kwok, layout.kwok(lease_seconds), healthy("http", layout.kwok_port))

    @property
    def authority(self) -> Authority:
        """Signs for whoever stands in the API server's place."""
        return self._layout.authority

    @property
    def storage(self) -> str:
        """Address of etcd, for whoever puts objects there behind the API server's back."""
        return f"http://127.0.0.1:{self._layout.etcd_port}"

    @property
    def parts(self) -> Sequence[Server]:
        """In the order in which they start."""
        return self.etcd, self.apiserver, self.controllers, self.scheduler, self.kwok

    # ------------------------------------------------------------ life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        # Logs stay for whoever looks; what etcd sets aside is 128 MB and more.
        shutil.rmtree(self._layout.data, ignore_errors=True)

    def start(self) -> None:
        """Returns when the parts are ready and the custom resources are served. Leaves nothing running when it fails."""
        try:
            self._start()
            self.define()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends everything at once: nothing of a temporary cluster is worth a polite goodbye."""
        with contextlib.ExitStack() as stack:  # which goes on when one of them cannot be ended
            for part in self.parts:
                stack.callback(part.kill)

    def restart_empty(self) -> None:
        """The same address and authority, and nothing in it any more: versions of resources start again, tokens are of nobody.

        The custom resources are gone too; `define` brings them back.
        """
        self.stop()
        shutil.rmtree(self._layout.data)
        self._start()

    def define(self) -> None:
        """Applies our definitions of custom resources and returns when the API server serves them."""
        names = [
            definition["metadata"]["name"]
            for file in sorted(DEFINITIONS.glob("*.yaml"))
            for definition in self.api.apply(file)
        ]
        until(lambda: all(map(self._is_served, names)), "custom resources that are served")

    def _start(self) -> None:
        self.etcd.start()
        self.apiserver.start()
        until(self._roles_count, "the API server's own roles")
        others = self.controllers, self.scheduler, self.kwok
        for part in others:
            part.launch()
        for part in others:
            part.wait()
        until(lambda: self.api.exists("/api/v1/namespaces/default/serviceaccounts/default"), "an account")

    def _roles_count(self) -> bool:
        """Its rules count a moment after the API server calls itself ready; a controller that asks too early ends."""
        wanted = {"namespace": "kube-system", "name": "extension-apiserver-authentication"}
        return all(
            Api(self._layout.kubeconfig(user)).may("get", "configmaps", **wanted)
            for user in (CONTROLLERS, SCHEDULER)
        )

    def _is_served(self, name: str) -> bool:
        """In every version: each has a storage of its own, which takes a moment after the definition is established."""
        definition = self.api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        spec = definition["spec"]
        return condition(definition, "Established") == "True" and all(
            self.api.exists(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
            for version in spec["versions"]
        )

    # ------------------------------------------------------------ who may enter

    def kubeconfig(self, user: str = "administrator", groups: Sequence[str] = ()) -> str:
        """For a person with a client certificate: the administrator may do everything, another what roles give."""
        return self._layout.kubeconfig(user, [ADMINISTRATORS] if user == "administrator" else groups)

    def service_account(self, namespace: str, name: str) -> str:
        """A kubeconfig with a fresh token of a ServiceAccount that exists."""
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        answer = self.api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", asked)
        return kubeconfig.text(self.url, self._layout.authority.pem, name, str(answer["status"]["token"]))

    # ------------------------------------------------------------ the programs

    def _server(self, program: Path, options: Sequence[str], ready: Callable[[Server], bool]) -> Server:
        # Our own settings stay out: a proxy, a person's kubeconfig, a kwok.yaml in the home folder.
        home = str(self.folder)
        surroundings = {"PATH": os.environ.get("PATH", ""), "HOME": home, "TMPDIR": home}
        return Server(
            [str(program), *options],
            self.folder,
            ready,
            environment=surroundings,
            # An API server that is asked to end waits a minute and more for an etcd that has ended already.
            death_signal=signal.SIGKILL,
            patience=PATIENCE_SECONDS,
        )

    def _etcd_ready(self, _: Server) -> bool:
        return servers.answers(f"{self.storage}/readyz")

    def _apiserver_ready(self, _: Server) -> bool:
        with contextlib.suppress(OSError, ApiError):
            return self.api.raw("GET", "/readyz") == b"ok"
        return False


def healthy(scheme: str, port: int) -> Callable[[Server], bool]:
    # The scheduler and the controllers make themselves a certificate that nobody signed.
    context = ssl._create_unverified_context()

    def check(_: Server) -> bool:
        return servers.answers(f"{scheme}://127.0.0.1:{port}/healthz", context)

    return check


def condition(thing: dict[str, object], kind: str) -> str:
    """The status of a condition of an object; "" = it has none of the kind."""
    status = thing.get("status")
    known = status.get("conditions") if isinstance(status, dict) else None
    return next((str(each["status"]) for each in known or [] if each["type"] == kind), "")


def until(true: Callable[[], object], wanted: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Returns when it is true; fails, and says what was wanted, when it does not become true."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds:.0f} s for {wanted}")
        time.sleep(0.05)
