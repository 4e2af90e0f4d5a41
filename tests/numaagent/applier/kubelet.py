"""A played kubelet: it reads the real files of a tree, refuses what a real one refuses, and dies as late as a real one does.

Seen on kubelet 1.37: a bad policy ends it before healthz answers; a state file of another policy after healthz said `ok`.
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
LATE = 0.2
"""Seconds after which one dies that said `ok` first."""
KNOWN = (
    "cpuManagerPolicy", "cpuManagerPolicyOptions", "topologyManagerPolicy", "topologyManagerScope", "topologyManagerPolicyOptions",
    "memoryManagerPolicy", "reservedMemory", "reservedSystemCPUs", "systemReserved", "kubeReserved",
)  # fmt: skip


def settings(tree: Path) -> dict[str, Any]:
    """What its file and its drop-ins say."""
    found: dict[str, Any] = yaml.safe_load((tree / "var/lib/kubelet/config.yaml").read_text())
    for path in sorted((tree / "etc/kubernetes/kubelet.conf.d").glob("*.conf")):
        found |= yaml.safe_load(path.read_text())
    return found


def main(tree: Path) -> None:
    """Lives until somebody ends it or its settings do."""
    found = settings(tree)
    if (tree / "broken").exists():
        sys.exit(1)
    if found.get("topologyManagerPolicy", "none") not in POLICIES:
        sys.exit(1)
    if found.get("cpuManagerPolicy", "none") == "static" and not (
        found.get("systemReserved") or found.get("reservedSystemCPUs")
    ):
        sys.exit(1)
    servers = [_serve(found["healthzPort"], _Health, tree, found)]
    if (tree / "var/lib/kubelet/pki/kubelet.key").exists():
        servers.append(_serve(found["port"], _Configz, tree, found))
    if not _state(tree, "cpu_manager_state", found.get("cpuManagerPolicy", "none")) or (
        (tree / "doomed").exists() and found.get("topologyManagerPolicy", "none") != "none"
    ):
        time.sleep(LATE)
        sys.exit(1)
    threading.Event().wait()


def _state(tree: Path, name: str, policy: str) -> bool:
    """Whether it can live with the state file; makes one where there is none."""
    path = tree / "var/lib/kubelet" / name
    if path.exists():
        return bool(json.loads(path.read_text())["policyName"] == policy)
    written = tree / f"{name}.new"
    written.write_text(json.dumps({"policyName": policy, "defaultCpuSet": "0-3", "checksum": 1}))
    written.rename(path)
    return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    tree: Path
    found: dict[str, Any]


class _Answering(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *args: Any) -> None:
        pass

    def say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Health(_Answering):
    def do_GET(self) -> None:
        silent = (self.server.tree / "silent").exists() and self.server.found.get(
            "topologyManagerPolicy"
        ) != "none"
        if silent:
            self.say(500, b"[-]syncloop failed")
        else:
            self.say(200, b"ok")


class _Configz(_Answering):
    def do_GET(self) -> None:
        if self.headers.get("Authorization") != "Bearer a-token-of-the-job":
            self.say(401, b"Unauthorized")
            return
        shown = {name: self.server.found[name] for name in KNOWN if self.server.found.get(name)}
        if shown.get("reservedSystemCPUs"):
            shown["systemReserved"] = {**shown.get("systemReserved", {}), "cpu": "2"}
        if (self.server.tree / "flag").exists():
            shown["topologyManagerPolicy"] = "none"
        self.say(200, json.dumps({"kubeletconfig": shown}).encode())


def _serve(port: int, handler: type[_Answering], tree: Path, found: dict[str, Any]) -> _Server:
    context = None
    if handler is _Configz:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(
            tree / "var/lib/kubelet/pki/kubelet.crt", tree / "var/lib/kubelet/pki/kubelet.key"
        )
    server = _Server(("127.0.0.1", port), handler)
    server.tree, server.found = tree, found
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server
