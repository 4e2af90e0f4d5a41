"""Our applier as a cluster runs it: the Job of the chart on the real node, with a signed order, and the answer that the kubelet brings back."""

import time
from itertools import count
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from numacore.change import editing
from numacore.change import order as orders
from numacore.change.order import Answer, Order, Signed
from numacore.whatif.changing import Change
from tests.cluster import rights
from tests.cluster.api import Object
from tests.node.lab import NAME, SETTINGS, Lab, until
from tests.servers import ROOT

NAMESPACE = "numaweb"
JOB = ROOT / "charts" / "volcano-config-service" / "files" / "applier" / "job.yaml"
SECONDS = 1800.0
"""For a change and the way back, on a machine whose processors are emulated."""
HOME = "/var/lib/numaweb"
DOOMED = """\
import os, sys
from numaagent.applier import command, journal

step, begun, note = sys.argv.pop(1), [], journal.Journal.note

def noted(self, following, at):
    if begun and begun[-1] == step:
        os._exit(137)
    begun.append(following)
    note(self, following, at)

journal.Journal.note = noted
sys.exit(command.main(sys.argv[1:], os.environ))
"""
"""The applier that is gone when this step is done. SIGKILL would do nothing to the first process of a container that sends it itself."""


class Applier:
    """Gives orders to the node of a lab."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._key = Ed25519PrivateKey.generate()
        self._numbers, self._epochs = count(1), count(1)
        api = lab.plane.api
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for thing in rights.objects("applier"):
            api.apply(thing)
        public = self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        keys: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "numaweb-order-keys", "namespace": NAMESPACE},
            "data": {"keys.pem": public.decode()},
        }
        api.apply(keys)

    # ------------------------------------------------------------ orders

    def order(self, keys: dict[str, Any], **fields: Any) -> Order:
        """From the node's settings as they are; `fields` win."""
        text = self._lab.settings()
        removed = dict.fromkeys(fields.get("removed", ()), editing.REMOVE)
        given: dict[str, Any] = {
            "act": "apply",
            "node": NAME,
            "machine_id": self._lab.machine_id,
            "epoch": next(self._epochs),
            "rollout": "test",
            "path": SETTINGS,
            "keys": keys,
            "before": orders.sha256(text),
            "expires": int(time.time()) + 3600,
            "healthy_within": 240,
            "steady_for": 20,
            "dead_man": 900,
        }
        given |= fields
        if "after" not in given:
            given["after"] = orders.sha256(editing.edit(text, {**keys, **removed}))
        return Order(**given)

    def planned(self, change: Change, **fields: Any) -> Order:
        """The order that a preview comes to."""
        assert change.refusals == ()
        files = tuple(each.file for each in change.state_files)
        made = {name: getattr(change, name) for name in ("path", "drop_in", "removed", "before", "after")}
        return self.order(change.keys, **made, state_files=files, **fields)

    # ------------------------------------------------------------ Jobs

    def start(self, order: Order, *, dies_after: str = "") -> str:
        """Makes a Job of this order; its name. `dies_after`: the step after which the applier is gone, as killed."""
        document = orders.encode(order)
        name = f"numaweb-applier-{next(self._numbers)}"
        signed = Signed(
            document=document,
            signature=self._key.sign(orders.signed_bytes(document)),
            key=orders.key_name(self._key.public_key().public_bytes_raw()),
        )
        job: Object = yaml.safe_load(JOB.read_text(encoding="utf-8"))
        job["metadata"]["name"] = name
        template = job["spec"]["template"]
        inside = template["spec"]
        template["metadata"]["annotations"]["numaweb.io/order"] = orders.encode_signed(signed).decode()
        inside["nodeName"] = NAME
        if dies_after:
            [container] = inside["containers"]
            container["command"] = ["python3", "-c", DOOMED, dies_after]
            job["spec"]["backoffLimit"] = 0  # whoever goes on is chosen by the test
        self._lab.plane.api.create(job)
        return name

    def answer(self, name: str) -> Answer:
        """The word of the Job's first pod, as its termination message."""
        return orders.decode_answer(self.ended(name).get("message", "").encode())

    def give(self, order: Order) -> Answer:
        return self.answer(self.start(order))

    def killed(self, order: Order, step: str) -> None:
        """Returns when the applier was there and is gone, as killed after this step."""
        ended = self.ended(self.start(order, dies_after=step))
        assert ended["exitCode"] == 137, ended

    def ended(self, name: str) -> Object:
        """How the container of the Job's first pod ended, when it has."""
        found: list[Object] = []

        def over() -> bool:
            found[:] = self._terminated(name)
            return bool(found)

        until(over, f"the end of {name}", SECONDS, words=lambda: self._lab.journal(30))
        return found[0]

    # ------------------------------------------------------------ the node

    def until_noted(self, order: Order, step: str) -> None:
        """Returns when this step was begun."""
        journal = f"{HOME}/changes/{order.epoch}/journal"
        # One command that waits there: each one from here takes the node a moment.
        self._lab.run(f'until grep -q \'"step":"{step}"\' {journal}; do sleep 0.2; done 2> /dev/null')

    def leftovers(self) -> str:
        """Units and signs of an unfinished change that stand on the node."""
        return self._lab.run(
            f"ls -d {HOME}/undo/armed /var/lib/kubelet/.*.numaweb /etc/systemd/system/numaweb* "
            "/etc/systemd/system/timers.target.wants/numaweb* 2> /dev/null || true"
        ).strip()

    def _terminated(self, name: str) -> list[Object]:
        pods = self._lab.plane.api.items(
            f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=f"batch.kubernetes.io/job-name={name}"
        )
        return [
            status["state"]["terminated"]
            for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
            for status in pod["status"].get("containerStatuses", ())
            if "terminated" in status["state"]
        ]
