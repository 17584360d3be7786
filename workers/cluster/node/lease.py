"""The lease by which a node says that it lives (component-helpers/apimachinery/lease/controller.go).

It is renewed four times within its duration, with the resourceVersion that was seen last. Whoever else writes it makes
a conflict, and then it is read again: of two nodes of one name both renew it, and nobody can tell.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

import msgspec

from ipc.host.clock import Clock, rfc3339_micro
from ipc.host.text.json_types import UNDECODABLE
from ipc.link.eventloop.backoff import Backoff
from workers.kubeclient.errors import ApiError, ClusterError, Unreachable, check_name
from workers.kubeclient.protocol import Client, Verb
from workers.kubeclient.resources import LEASES

NAMESPACE: Final = "kube-node-lease"
RENEWALS: Final = 4
"""Renewals within a lease's duration (nodeLeaseRenewIntervalFraction)."""
MAX_UPDATES: Final = 5
"""Tries of one renewal (maxUpdateRetries)."""
TRIES: Final = Backoff(0.2, 7.0)
JITTER: Final = 0.04
MAX_VERSION_DIGITS: Final = 20
"""Longest resourceVersion that is compared: 64 bits."""
QUERY: Final[Mapping[str, str]] = {"timeout": "10s"}


class _Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base: what is not set is left out."""


class LeaseOwner(_Shape, frozen=True, kw_only=True):
    """Reference to the Node: with it the lease goes."""

    api_version: str = msgspec.field(default_factory=lambda: "v1")
    kind: str = msgspec.field(default_factory=lambda: "Node")
    name: str
    uid: str


class LeaseMeta(_Shape, frozen=True, kw_only=True):
    """ObjectMeta that is sent back as it came."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[LeaseOwner, ...] = ()


class LeaseSpec(_Shape, frozen=True, kw_only=True):
    """Holder and time; all fields of others are kept."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(_Shape, frozen=True, kw_only=True):
    """coordination.k8s.io/v1 Lease."""

    kind: str = msgspec.field(default_factory=lambda: "Lease")
    api_version: str = msgspec.field(default_factory=lambda: "coordination.k8s.io/v1")
    metadata: LeaseMeta
    spec: LeaseSpec = LeaseSpec()


_LEASE: Final = msgspec.json.Decoder(Lease)
_log: Final = logging.getLogger(__name__)


def new_lease(base: Lease | None, name: str, node_uid: str, duration_s: int, wall: float) -> Lease | None:
    """The lease renewed; one that is to be made needs its Node's UID, and is None without. Pure."""
    owners = (LeaseOwner(name=name, uid=node_uid),) if node_uid else ()
    renewed = rfc3339_micro(wall)
    if base is None:
        spec = LeaseSpec(holder_identity=name, lease_duration_seconds=duration_s, renew_time=renewed)
        metadata = LeaseMeta(name=name, namespace=NAMESPACE, owner_references=owners)
        return Lease(metadata=metadata, spec=spec) if owners else None
    metadata = base.metadata
    if not metadata.owner_references:
        metadata = msgspec.structs.replace(metadata, owner_references=owners)
    return msgspec.structs.replace(base, metadata=metadata, spec=msgspec.structs.replace(base.spec, renew_time=renewed))


class LeaseController:
    """Renews the lease for ever."""

    def __init__(
        self,
        client: Client,
        name: str,
        duration_s: int,
        clock: Clock,
        *,
        node_uid: Callable[[], str],
        on_repeated_failure: Callable[[], None],
        chance: Callable[[], float],
        versions_fell: Callable[[], None] = lambda: None,
    ) -> None:
        """``node_uid`` is empty while the Node is not known. ``on_repeated_failure``: connections may be dead without
        anybody having said so. ``versions_fell``: the server has a lower resourceVersion than before, so its store was
        restored from a backup."""
        self._client = client
        self._name = name
        self._duration_s = duration_s
        self._clock = clock
        self._node_uid = node_uid
        self._on_repeated_failure = on_repeated_failure
        self._chance = chance
        self._versions_fell = versions_fell
        self._highest = 0
        """Highest resourceVersion of the lease that was seen."""
        self._latest: Lease | None = None

    async def run(self) -> NoReturn:
        """Keep the lease. Whatever the server answers is no error of this task."""
        period_s = self._duration_s / RENEWALS
        while True:
            await self.sync()
            await asyncio.sleep(period_s * (1 + JITTER * self._chance()))

    async def sync(self) -> None:
        """Renew it once, or make it."""
        if self._latest is not None and await self._renewed(self._latest):
            return
        lease, is_new = await self._ensured()
        self._latest = lease
        if lease is not None and not is_new:
            await self._renewed(lease)

    async def _ensured(self) -> tuple[Lease | None, bool]:
        """The server's lease, and whether it was just made; None while there is no Node that could own it."""
        failures = 0
        while True:
            try:
                return await self._ensure()
            except ClusterError as error:
                failures += 1
                pause_s = TRIES.pause_s(failures)
                _log.warning("the node's lease cannot be read or made, trying again in %.1f s: %s", pause_s, error)
                await asyncio.sleep(pause_s)

    async def _ensure(self) -> tuple[Lease | None, bool]:
        try:
            return await self._request("GET", LEASES.path(NAMESPACE, self._name)), False
        except ApiError as error:
            if not error.is_not_found:
                raise
        lease = self._new(None)
        if lease is None:
            return None, False
        return await self._request("POST", LEASES.path(NAMESPACE), lease), True

    async def _renewed(self, base: Lease) -> bool:
        """Whether one of a few tries succeeded."""
        current: Lease | None = base
        for tries in range(MAX_UPDATES):
            lease = self._new(current)
            if lease is None:
                return False
            try:
                self._latest = await self._request("PUT", LEASES.path(NAMESPACE, self._name), lease)
            except ClusterError as error:
                if isinstance(error, ApiError) and error.is_conflict:
                    current, _ = await self._ensured()
                    continue
                _log.warning("the node's lease is not renewed: %s", error)
                if tries:
                    self._on_repeated_failure()
            else:
                return True
        return False

    def _new(self, base: Lease | None) -> Lease | None:
        return new_lease(base, self._name, self._node_uid(), self._duration_s, self._clock.now().wall)

    async def _request(self, verb: Verb, path: str, lease: Lease | None = None) -> Lease:
        body = None if lease is None else msgspec.json.encode(lease)
        answer = await self._client.request(verb, path, query=QUERY, body=body)
        try:
            found = _LEASE.decode(answer)
            check_name(found.metadata.name, self._name)
            self._compare(found.metadata.resource_version)
            return found
        except UNDECODABLE as error:
            raise Unreachable(f"{verb} {path}: the answer is no Lease: {error}") from None

    def _compare(self, version: str) -> None:
        if not (len(version) <= MAX_VERSION_DIGITS and version.isascii() and version.isdecimal()):
            return
        if int(version) < self._highest:
            self._versions_fell()
        self._highest = int(version)
