"""All that the node tells of its kubelet: settings, state files and the PodResources socket in one value."""

from __future__ import annotations

import msgspec

from numaagent.config import Roots
from numaagent.readers import kubeletconfig, kubeletprocess, podresources, statefiles
from numaagent.readers.files import Files
from numaagent.readers.kubeletconfig import Asked
from numaagent.readers.podresources import PodResources
from numacore.kubeletstate import CpuManagerState, Kubelet, MemoryManagerState

SEARCH_PERIOD = 60.0
"""Seconds between searches for the kubelet's process: one looks at every process of the node."""


class Reading(msgspec.Struct, frozen=True):
    """The kubelet, and what its socket tells of each container."""

    kubelet: Kubelet
    resources: PodResources | None = None


class Reader:
    """Reads again only what changed; the socket is asked each time."""

    def __init__(self, files: Files, roots: Roots, client: podresources.Client) -> None:
        self._files = files
        self._roots = roots
        self._client = client
        self._finder = kubeletprocess.Finder(files, roots)
        self._searched: float | None = None
        self._flags: dict[str, str] | None = None
        self._settings: tuple[object, Asked] = (None, Asked({}, ()))
        self._cpu: tuple[object, CpuManagerState | None] = (None, None)
        self._memory: tuple[object, MemoryManagerState | None] = (None, None)

    def read(self, now: float, wall: float) -> Reading:
        """The kubelet now; `now`: monotonic seconds, `wall`: seconds since 1970."""
        if self._searched is None or now - self._searched >= SEARCH_PERIOD:
            self._searched = now
            command = self._finder.command()
            self._flags = None if command is None else kubeletprocess.flags(command)
        folder = self._folder()
        present = self._present(folder)
        if not present:
            return Reading(Kubelet(present=present))
        socket = f"{folder}/pod-resources/kubelet.sock"
        resources = self._client.read(socket, now, wall, required=self._flags is not None)
        return Reading(self._kubelet(folder, resources), resources)

    def _folder(self) -> str:
        if self._roots.kubelet:
            return self._roots.kubelet
        return self._roots.at((self._flags or {}).get("root-dir") or "/var/lib/kubelet")

    def _present(self, folder: str) -> bool | None:
        """Whether there is a trace of a kubelet; None where we may not look."""
        if self._flags is not None:
            return True
        source = self._files.reader("kubelet")
        traces = {"config.yaml", statefiles.CPU_FILE, statefiles.MEMORY_FILE, "pod-resources", "pods"}
        found = bool(traces & set(source.names(folder)))
        return found or (None if self._files.problems.met("kubelet") else False)

    def _kubelet(self, folder: str, resources: PodResources | None) -> Kubelet:
        flags = self._flags or {}
        path = self._roots.kubelet_config or self._roots.at(
            flags.get("config") or f"{self._shown(folder)}/config.yaml"
        )
        drop_ins = self._roots.at(flags["config-dir"]) if "config-dir" in flags else None
        asked = self._asked(path, drop_ins)
        return Kubelet(
            present=True,
            settings=asked.settings,
            unread=asked.unread,
            config_path=self._shown(path),
            drop_in_dir=flags.get("config-dir"),
            files=asked.files,
            root_dir=self._shown(folder),
            allocatable_cpus=resources.allocatable_cpus if resources else None,
            allocatable_memory=resources.allocatable_memory if resources else None,
            allocatable_devices=resources.allocatable_devices if resources else None,
            cpu_state=self._cpu_state(folder),
            memory_state=self._memory_state(folder),
            stale_since=self._client.stale_since,
        )

    def _asked(self, path: str, drop_ins: str | None) -> Asked:
        source, flags = self._files.reader("kubelet"), self._flags
        names = sorted(source.names(drop_ins)) if drop_ins else []
        places = [path, *(f"{drop_ins}/{name}" for name in names)]
        key = (
            path,
            drop_ins,
            None if flags is None else tuple(flags.items()),
            tuple((place, source.state(place)) for place in places),
        )
        if key != self._settings[0]:
            required = "config" in (flags or {}) or self._roots.kubelet_config is not None
            found = kubeletconfig.read(self._files, self._roots, path, drop_ins, flags, required=required)
            self._settings = (key, found)
        return self._settings[1]

    def _cpu_state(self, folder: str) -> CpuManagerState | None:
        key = (folder, self._files.reader("kubelet").state(f"{folder}/{statefiles.CPU_FILE}"))
        if key != self._cpu[0]:
            self._cpu = (key, statefiles.cpu(self._files, folder))
        return self._cpu[1]

    def _memory_state(self, folder: str) -> MemoryManagerState | None:
        key = (folder, self._files.reader("kubelet").state(f"{folder}/{statefiles.MEMORY_FILE}"))
        if key != self._memory[0]:
            self._memory = (key, statefiles.memory(self._files, folder))
        return self._memory[1]

    def _shown(self, path: str) -> str:
        return self._roots.shown(path)
