"""A dialer of pods in memory: they have no network."""

from __future__ import annotations

from socket import AddressFamily
from socket import socket as Socket

from workers.podhttp.pod_network import DialError, PodNetwork

REFUSAL = "nobody dials into pods here"


class FakeDialer:
    """`workers.podhttp.pod_network.Dialer` that refuses."""

    async def socket(self, network: PodNetwork, family: AddressFamily) -> Socket:
        raise DialError(REFUSAL)
