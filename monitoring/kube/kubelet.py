"""What a kubelet itself says is in force: its `/configz`, asked at its own port.

Only of kubelets whose certificate the cluster's authority signed for their address: a token is sent to nobody else. The right is
`nodes/configz` where the kubelet knows it (KubeletFineGrainedAuthz, beta and on from 1.33); an older one wants `nodes/proxy`, which numaweb never has.
"""

from __future__ import annotations

from typing import Any

import msgspec

from monitoring.kube import errors
from monitoring.kube.access import Access
from monitoring.kube.client import Client, Limits
from monitoring.kube.errors import Garbled
from monitoring.kube.rights import Right

RIGHT = Right("get", "", "nodes", "configz", why="configz")
PORT = 10250
LIMITS = Limits(connect=3.0, answer=5.0, body=1024 * 1024)


class _Configz(msgspec.Struct):
    kubeletconfig: dict[str, Any]


async def configz(access: Access, address: str, port: int | None, limits: Limits = LIMITS) -> dict[str, Any]:
    """The KubeletConfiguration that a kubelet runs with. `access`: that of its API server.

    Raises:
        ApiError: it cannot be reached or trusted, refuses, or answers otherwise.
    """
    host = f"[{address}]" if ":" in address else address
    theirs = msgspec.structs.replace(access, server=f"https://{host}:{port or PORT}", tls_server_name="")
    async with Client(theirs, limits) as client:
        answer = await client.get("/configz")
    try:
        return msgspec.json.decode(answer, type=_Configz).kubeletconfig
    except msgspec.DecodeError as error:
        raise Garbled(
            200, "NotAKubelet", f"this is no configuration of a kubelet: {error}", remedy=errors.ADDRESS
        ) from None
