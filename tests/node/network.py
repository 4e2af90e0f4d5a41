"""The wire between this machine and the emulated node: a network device that exists as long as this process does.

A TAP device that nobody made persistent goes with the last process that holds it, and its address and routes go with it, however that
process ends. So nothing has to be put back, and a second node on the same machine is told that the device is taken.

There is no way further: the node reaches this machine and nothing else.
"""

import errno
import fcntl
import os
import struct
import subprocess
from typing import Self

DEVICE = "numaweb-node"
# RFC 2544 keeps 198.18.0.0/15 for test networks: no machine is a member of it by its own address.
HOST = "198.18.37.1"
NODE = "198.18.37.2"
PODS = "198.18.38.0/24"
PREFIX_LENGTH = 30
HOST_MAC = "02:00:c6:12:25:01"
NODE_MAC = "02:00:c6:12:25:02"
"""Both stay the same, so that a node that is resumed knows its neighbour."""

_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000


class NetworkError(Exception):
    """Why there can be no network, as a sentence."""


class TakenError(NetworkError):
    """Another run has it."""


def check() -> None:
    """Raises NetworkError where this machine never gives a network; one that is taken now counts as one that there is."""
    try:
        os.close(_tap())
    except NetworkError as error:
        if not isinstance(error, TakenError):
            raise


class Network:
    """`with Network() as network`: HOST is this machine, and NODE and PODS are reached through the device."""

    def __init__(self) -> None:
        self._device: int | None = None

    @property
    def device(self) -> int:
        """The open TAP device, for the emulator; only inside the block."""
        assert self._device is not None
        return self._device

    def __enter__(self) -> Self:
        self._device = _tap()
        try:
            _ip("link", "set", "dev", DEVICE, "address", HOST_MAC, "up")
            _ip("address", "add", f"{HOST}/{PREFIX_LENGTH}", "dev", DEVICE)
            _ip("route", "add", PODS, "via", NODE, "dev", DEVICE)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._device is not None:
            os.close(self._device)
        self._device = None


def _tap() -> int:
    try:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise NetworkError(
            f"a network device for the emulated node: /dev/net/tun cannot be opened ({error.strerror}). "
            "It takes root and the kernel's module tun."
        ) from None
    try:
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TAP | _IFF_NO_PI))
    except OSError as error:
        os.close(device)
        if error.errno == errno.EBUSY:
            raise TakenError(
                f"a free network device {DEVICE}: another run has an emulated node on this machine. Wait for its end."
            ) from None
        raise NetworkError(f"the right to make the network device {DEVICE} ({error.strerror})") from None
    return device


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise NetworkError(f"a network for the emulated node: ip {' '.join(words)}: {done.stderr.strip()}")
