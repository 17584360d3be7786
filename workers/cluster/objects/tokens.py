"""Tokens of service accounts for the pods of this node: asked for, kept in memory, and renewed in time
(pkg/kubelet/token/token_manager.go). No log line says one."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import Callable
from typing import Final

import msgspec

from ipc.host.clock import Clock
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.cluster_values import PodToken, TokenRequest
from ipc.link.eventloop.tasks import BackgroundTasks, restarted
from workers.cluster.objects.token_state import MAX_JITTER_S, Attempts, Issued, expiration
from workers.kubeclient.errors import ApiError, ClusterError
from workers.kubeclient.protocol import Client
from workers.kubeclient.resources import SERVICE_ACCOUNTS

log = logging.getLogger(__name__)

LONGEST_SLEEP_S: Final = 60.0
"""How often the host's clock is looked at while a token is good: it may be set, and the host may sleep."""


MAX_REQUESTS: Final = 10
"""Most requests for tokens that are under way: each takes a connection of its own."""
LONGEST_DECISION_S: Final = 5.0
"""How long a token waits at most until its pod was admitted, in seconds: a pod that the node neither takes nor refuses
waits for something else, such as its name."""
SHORTEST_PERIOD_S: Final = 60.0
"""How long a new token is kept at least, in seconds, whatever the clocks of server and node say (the kubelet asks when
it syncs the pod, about once a minute)."""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str
    expiration_timestamp: str


class _TokenRequest(msgspec.Struct, frozen=True):
    """The part of an answered authentication.k8s.io/v1 TokenRequest that is read."""

    status: _Status


_ANSWER: Final = msgspec.json.Decoder(_TokenRequest)


class Tokens:
    """The tokens of each pod, with the task that renews each of them."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        changed: Callable[[str], None],
        tasks: BackgroundTasks,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``changed``: called with the UID of a pod that has got another token, or none."""
        self._client = client
        self._clock = clock
        self._changed = changed
        self._tasks = tasks
        self._chance = chance
        self._permits = asyncio.Semaphore(MAX_REQUESTS)
        self._found: dict[str, dict[TokenRequest, PodToken]] = {}
        self._renewals: dict[str, list[asyncio.Task[None]]] = {}
        self._tried: dict[str, dict[TokenRequest, asyncio.Event]] = {}
        self._admissions: dict[str, asyncio.Event] = {}
        """Decisions that are still to come, by the UIDs of their pods."""

    def of_pod(self, uid: str) -> tuple[PodToken, ...]:
        """Tokens that there are now."""
        return tuple(self._found.get(uid, {}).values())

    def state(self, pod: Pod, requests: tuple[TokenRequest, ...], *, is_admitted: bool = True) -> None:
        """The pod wants these tokens; its volumes never change. Those of a pod that may be refused yet are asked for
        when it is `admitted`: a kubelet asks when it sets volumes up (pkg/kubelet/kubelet.go, syncPod)."""
        uid = pod.metadata.uid
        if not is_admitted:
            self._admissions.setdefault(uid, asyncio.Event())
        for wish in requests:
            tried = self._tried.setdefault(uid, {})
            if wish in tried:
                continue
            tried[wish] = asyncio.Event()
            name = f"token of {pod.metadata.namespace}/{pod.metadata.name}"
            keeping = restarted(functools.partial(self._keep, pod, wish), name=name)
            self._renewals.setdefault(uid, []).append(self._tasks.spawn(keeping, name=name))

    def admitted(self, uid: str) -> None:
        """The node has taken that pod."""
        if (admission := self._admissions.pop(uid, None)) is not None:
            admission.set()

    def refused(self, uid: str) -> None:
        """The node has refused that pod, if it had not taken it before."""
        if uid in self._admissions:
            self.end(uid)

    def end(self, uid: str) -> None:
        """The pod runs no more, or never will: nothing is asked for any more."""
        self._stop(uid)
        for tried in self._tried.get(uid, {}).values():
            tried.set()

    def forget(self, uid: str) -> None:
        """The pod has gone."""
        self._stop(uid)
        self._tried.pop(uid, None)
        self._found.pop(uid, None)

    def _stop(self, uid: str) -> None:
        self._admissions.pop(uid, None)
        for task in self._renewals.pop(uid, ()):
            task.cancel()

    def are_tried(self, uid: str) -> bool:
        """Whether `tried` returns at once."""
        return all(event.is_set() for event in self._tried.get(uid, {}).values())

    async def tried(self, uid: str) -> None:
        """Returns when each token of the pod was asked for once, or is not wanted any more."""
        for event in tuple(self._tried.get(uid, {}).values()):
            await event.wait()

    async def _keep(self, pod: Pod, wish: TokenRequest) -> None:
        """Ask, and ask again in time, for ever."""
        await self._decision(pod.metadata.uid)
        known: Issued | None = None
        attempts, renew_at = Attempts(), 0.0
        while True:
            if (left_s := renew_at - self._clock.now().wall) > 0:
                await asyncio.sleep(min(left_s, LONGEST_SLEEP_S))
                continue
            try:
                known, attempts = await self._request(pod, wish), Attempts()
                earliest = self._clock.now().wall + SHORTEST_PERIOD_S
                renew_at = max(known.renew_at(self._chance() * MAX_JITTER_S), earliest)
                self._note(pod, PodToken(wish=wish, token=known.token))
            except (ClusterError, ValueError) as error:
                self._failed(pod, wish, known, error)
                await asyncio.sleep(attempts.pause_s)
                attempts = attempts.failed()

    async def _decision(self, uid: str) -> None:
        """Returns when the pod was admitted, or after LONGEST_DECISION_S."""
        if (admission := self._admissions.get(uid)) is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_DECISION_S):
                    await admission.wait()

    async def _request(self, pod: Pod, wish: TokenRequest) -> Issued:
        """Raises ClusterError; ValueError for an answer that is none."""
        account = pod.spec.service_account_name or "default"
        path = SERVICE_ACCOUNTS.path(pod.metadata.namespace, account, "token")
        async with self._permits:
            answer = await self._client.request("POST", path, body=token_request(pod, wish))
        try:
            status = _ANSWER.decode(answer).status
        except UNDECODABLE:
            # The error may repeat a part of the token: it must not be anybody's cause.
            raise ValueError("the server's answer is no TokenRequest") from None
        return Issued(
            token=status.token,
            expires_at=expiration(status.expiration_timestamp),
            lifetime_s=float(wish.expiration_s),
        )

    def _failed(self, pod: Pod, wish: TokenRequest, known: Issued | None, error: Exception) -> None:
        """A token that is still good is kept."""
        where = f"{pod.metadata.namespace}/{pod.metadata.name}"
        log.warning("%s: no token of its service account: %s", where, error)
        if known is None:
            self._note(pod, PodToken(wish=wish, problem=f"failed to fetch token: {error}"))
        elif known.is_expired(self._clock.now().wall):
            account = pod.spec.service_account_name or "default"
            self._note(pod, PodToken(wish=wish, problem=f"token {account} expired and refresh failed: {error}"))
        if isinstance(error, ApiError) and error.is_unauthorized:
            log.warning("%s: the server does not take this node's credentials", where)

    def _note(self, pod: Pod, found: PodToken) -> None:
        uid = pod.metadata.uid
        before = self._found.setdefault(uid, {}).get(found.wish)
        self._found[uid][found.wish] = found
        self._tried[uid][found.wish].set()
        if before != found:
            self._changed(uid)


def token_request(pod: Pod, wish: TokenRequest) -> bytes:
    """Body of the request: a token that ends with the pod (pkg/volume/projected/projected.go, collectData)."""
    bound = {"kind": "Pod", "apiVersion": "v1", "name": pod.metadata.name, "uid": pod.metadata.uid}
    spec = {
        "audiences": [wish.audience] if wish.audience else None,
        "expirationSeconds": wish.expiration_s,
        "boundObjectRef": bound,
    }
    kinds = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {}}
    return msgspec.json.encode({**kinds, "spec": spec, "status": {"token": "", "expirationTimestamp": None}})
