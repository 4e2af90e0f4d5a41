"""How each program of a control plane is started: its options, and the files that they name."""

from collections.abc import Sequence
from pathlib import Path

from tests import servers
from tests.cluster import kubeconfig
from tests.cluster.certificates import Authority, signing_key
from tests.cluster.things import PLAYED

STAGES = Path(__file__).parent / "stages.yaml"
SERVICES = "10.0.0.0/24"
FIRST_SERVICE = "10.0.0.1"
ISSUER = "https://kubernetes.default.svc"
ADMINISTRATORS = "system:masters"
CONTROLLERS = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"


class Layout:
    """One folder and one set of free ports: where everything of a control plane is, also after it was started again."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        self.etcd_port, self.peers_port = servers.free_port(), servers.free_port()
        self.api_port = servers.free_port()
        self.controllers_port, self.scheduler_port = servers.free_port(), servers.free_port()
        self.kwok_port = servers.free_port()
        self.data = folder / "etcd"
        self.authority = Authority()
        self._authority_file = self._write("authority.pem", self.authority.pem)
        self._signing_file = self._write("signing.pem", signing_key())

    @property
    def url(self) -> str:
        """Of the API server."""
        return f"https://{self.address}:{self.api_port}"

    def kubeconfig(self, user: str, groups: Sequence[str] = ()) -> str:
        """For a user with a client certificate."""
        return kubeconfig.text(self.url, self.authority.pem, user, self.authority.client(user, groups))

    def kubeconfig_file(self, user: str, groups: Sequence[str] = ()) -> Path:
        return self._write(f"{user.rpartition(':')[2]}.kubeconfig", self.kubeconfig(user, groups))

    def _write(self, name: str, content: str) -> Path:
        file = self.folder / name
        file.touch(mode=0o600)
        file.write_text(content)
        return file

    # ------------------------------------------------------------ options

    def etcd(self) -> list[str]:
        clients, peers = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self.peers_port}"
        return [
            "--name=only",
            f"--data-dir={self.data}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=only={peers}",
            "--unsafe-no-fsync",  # what a crash of the machine would lose is thrown away anyway
            "--log-level=warn",
        ]

    def apiserver(self) -> list[str]:
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        pair = self.authority.server(names, [self.address, FIRST_SERVICE])
        return [
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--bind-address={self.address}",
            f"--secure-port={self.api_port}",
            # A loopback address cannot be advertised, and the API server ends when it is asked to.
            "--endpoint-reconciler-type=none",
            "--authorization-mode=Node,RBAC",
            f"--client-ca-file={self._authority_file}",
            f"--tls-cert-file={self._write('apiserver.crt', pair.certificate)}",
            f"--tls-private-key-file={self._write('apiserver.key', pair.key)}",
            f"--cert-dir={self.folder}",
            f"--service-account-key-file={self._signing_file}",
            f"--service-account-signing-key-file={self._signing_file}",
            f"--service-account-issuer={ISSUER}",
            f"--service-cluster-ip-range={SERVICES}",
            "--allow-privileged=true",
        ]

    def controllers(self) -> list[str]:
        return [
            *self._controller(CONTROLLERS, self.controllers_port),
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._signing_file}",
            f"--root-ca-file={self._authority_file}",
            # Namespaces come and go with tests; with the default of 20 requests a second they would wait for each other.
            "--kube-api-qps=300",
            "--kube-api-burst=600",
        ]

    def scheduler(self) -> list[str]:
        return self._controller(SCHEDULER, self.scheduler_port)

    def _controller(self, user: str, port: int) -> list[str]:
        file = self.kubeconfig_file(user)
        return [
            f"--kubeconfig={file}",
            f"--authentication-kubeconfig={file}",
            f"--authorization-kubeconfig={file}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--leader-elect=false",
        ]

    def kwok(self, lease_seconds: int) -> list[str]:
        selector = ",".join(f"{key}={value}" for key, value in PLAYED.items())
        return [
            f"--kubeconfig={self.kubeconfig_file('kwok', [ADMINISTRATORS])}",
            f"--config={STAGES}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={selector}",
            # Without a lease every node turns NotReady.
            f"--node-lease-duration-seconds={lease_seconds}",
            f"--server-address=127.0.0.1:{self.kwok_port}",
        ]
