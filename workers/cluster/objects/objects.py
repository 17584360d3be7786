"""Everything that the pods of this node get from the cluster, put together: who refers to what, and what is told."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple

from ipc.host.clock import Clock, SystemClock
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from ipc.k8s.podobjects.cluster_values import NO_VALUES, ClusterValues, token_requests, trust_projections
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind, referenced_objects
from ipc.k8s.podobjects.pod_claims import PodClaim, claim_name
from ipc.link.eventloop.tasks import BackgroundTasks, restarted
from ipc.link.messages.cluster import ObjectStated, ObjectWithdrawn, PodValuesStated
from ipc.link.wire.credential_provider import CredentialProvider
from workers.cluster.objects.accounts import Accounts
from workers.cluster.objects.claims import Claims
from workers.cluster.objects.object_watches import WATCHED, ObjectWatches
from workers.cluster.objects.runtime_classes import RuntimeClasses
from workers.cluster.objects.service_variables import MASTER_NAMESPACE, Service, service_variables
from workers.cluster.objects.services import Services
from workers.cluster.objects.tokens import Tokens
from workers.cluster.objects.trust_bundles import TrustBundles
from workers.kubeclient.protocol import Client

log = logging.getLogger(__name__)

PATIENCE_S: Final = 10.0
"""Longest wait for what a pod refers to, in seconds; then it begins without, and gets it when it comes
(pkg/kubelet/util/manager/watch_based_manager.go, Get)."""
SETTLING_S: Final = 1.0
"""How long changes of services are collected before pods are told, in seconds."""

Message = ObjectStated | ObjectWithdrawn | PodValuesStated


class Objects:
    """The objects of this node's pods."""

    def __init__(
        self,
        client: Client,
        tell: Callable[[Message], None],
        clock: Clock | None = None,
        *,
        master: Service | None = None,
        providers: Sequence[CredentialProvider] = (),
    ) -> None:
        """``tell``: a message to the master. ``master``: the master service, in place of the cluster's. ``providers``:
        the node's, of logins for images."""
        self._master = () if master is None else (master,)
        self._tell = tell
        self._tasks = BackgroundTasks()
        self._pods: dict[str, Pod] = {}
        self._reported: dict[str, ClusterValues] = {}
        self._references = References()
        self._watches = ObjectWatches(client, tell, self._tasks)
        self._claims = Claims(client, self._claim_changed, self._tasks)
        self._classes = RuntimeClasses(client, tell)
        self._services = Services(client, self._services_changed)
        self._tokens = Tokens(client, clock or SystemClock(), self._tell_values, self._tasks)
        self._accounts = Accounts(client, providers, self._tell_values, self._tasks)
        self._bundles = TrustBundles(client, self._bundles_changed)
        self._follows_bundles = False
        self._settling: set[str] = set()
        """Namespaces of services that have changed a moment ago."""

    async def run(self) -> None:
        """Follow services and classes for ever; what pods refer to is followed from `need` on. To be cancelled."""
        self._follow(self._services.run, "copy of the services")
        self._follow(self._classes.run, "copy of the runtime classes")
        try:
            await asyncio.Event().wait()
        finally:
            await self._tasks.close()

    def begin_anew(self) -> None:
        """The server's store was restored from a backup: everything is listed anew, claims are read anew."""
        for part in (self._services, self._classes, self._bundles, self._watches, self._claims):
            part.begin_anew()

    def follow(self, pod: Pod, *, is_new: bool = False) -> bool:
        """Follow what a pod refers to; whether the server has said of all of it whether it is there. Tokens of one that
        ``is_new`` are asked for when it was `decided` that it runs here."""
        uid, was_known = pod.metadata.uid, pod.metadata.uid in self._pods
        self._pods[uid] = pod
        keys = _keys(pod)
        self._apply(self._references.state(uid, keys))
        for key in () if was_known else _claim_keys(pod).values():
            self._claims.begin(key)
        if pod.status.phase in TERMINAL_PHASES:
            self._tokens.end(uid)
        else:
            requests = (*token_requests(pod), *self._accounts.requests(pod))
            self._tokens.state(pod, requests, is_admitted=not is_new)
        self._accounts.state(pod)
        if trust_projections(pod) and not self._follows_bundles:
            self._follows_bundles = True
            self._follow(self._bundles.run, "copy of the trust bundles")
        of_all = self._services.synced.is_set() and self._tokens.are_tried(uid) and self._accounts.is_tried(uid)
        is_read = of_all and all(self._watches.is_read(key) and self._claims.is_read(key) for key in keys)
        if is_read:
            self._tell_values(uid)
        return is_read

    async def need(self, pod: Pod) -> None:
        """Follow what a pod refers to. Returns when the server has said of each whether it is there, or after
        PATIENCE_S."""
        if self.follow(pod):
            return
        uid = pod.metadata.uid
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._services.synced.wait()
                await self._tokens.tried(uid)
                await self._accounts.tried(uid)
                for key in _keys(pod):
                    await self._watches.read(key)
                    await self._claims.read(key)
        except TimeoutError:
            namespace, name = pod.metadata.namespace, pod.metadata.name
            log.warning("%s/%s: begins before all that it refers to was read", namespace, name)
        self._tell_values(uid)

    def decided(self, uid: str, *, is_refused: bool) -> None:
        """The node has taken a pod, or refused it; for a pod of which that is known already this does nothing."""
        if is_refused:
            self._tokens.refused(uid)
        else:
            self._tokens.admitted(uid)

    def forget(self, uid: str) -> None:
        """The pod has gone, with all that is left of it here."""
        if self._pods.pop(uid, None) is None:
            return
        self._apply(self._references.state(uid, ()))
        self._tokens.forget(uid)
        self._accounts.forget(uid)
        if self._reported.pop(uid, None) is not None:
            self._tell(PodValuesStated(uid=uid, values=None))

    def _apply(self, difference: Difference) -> None:
        for key in sorted(difference.unwanted):
            if key.kind in WATCHED:
                self._watches.end(key)
            elif key.kind is ObjectKind.PERSISTENT_VOLUME_CLAIM:
                self._claims.end(key)
        for key in sorted(difference.wanted):
            if key.kind in WATCHED:
                self._watches.begin(key)

    def _follow(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        self._tasks.spawn(restarted(run, name=name), name=name)

    def _tell_values(self, uid: str) -> None:
        """Tell the values of a pod when they are others than before."""
        pod = self._pods.get(uid)
        if pod is None:
            return
        links = pod.spec.enable_service_links is not False
        values = ClusterValues(
            service_variables=service_variables(
                (*self._master, *self._services.all()), pod.metadata.namespace, links=links
            ),
            tokens=self._tokens.of_pod(uid),
            trust_anchors=tuple(self._bundles.anchors(wish) for wish in trust_projections(pod)),
            claims=self._claims_of(pod),
            account=self._accounts.of_pod(pod, self._tokens.of_pod(uid)),
        )
        if values != self._reported.get(uid):
            self._reported[uid] = values
            self._tell(PodValuesStated(uid=uid, values=values))

    def _claims_of(self, pod: Pod) -> dict[str, PodClaim]:
        """By volume. What a pod was given once stays while the server does not answer."""
        reported, found = self._reported.get(pod.metadata.uid, NO_VALUES).claims, {}
        keys = _claim_keys(pod)
        for volume in pod.spec.volumes:
            if volume.name not in keys:
                continue
            newest, before = self._claims.find(keys[volume.name]), reported.get(volume.name)
            keeps = before is not None and not before.problem and not newest.is_answer
            found[volume.name] = before if before is not None and keeps else newest.of(pod, volume)
        return found

    def _claim_changed(self, key: ObjectKey) -> None:
        for uid, pod in tuple(self._pods.items()):
            if key in _claim_keys(pod).values():
                self._tell_values(uid)

    def _services_changed(self, namespaces: Collection[str]) -> None:
        if not self._settling:
            asyncio.get_running_loop().call_later(SETTLING_S, self._settled)
        self._settling.update(namespaces)

    def _settled(self) -> None:
        namespaces, self._settling = self._settling, set()
        for uid, pod in tuple(self._pods.items()):
            if MASTER_NAMESPACE in namespaces or pod.metadata.namespace in namespaces:
                self._tell_values(uid)

    def _bundles_changed(self) -> None:
        for uid, pod in tuple(self._pods.items()):
            if trust_projections(pod):
                self._tell_values(uid)


def _claim_keys(pod: Pod) -> dict[str, ObjectKey]:
    """Claims of a pod, by volume."""
    namespace, names = pod.metadata.namespace, {each.name: claim_name(pod, each) for each in pod.spec.volumes}
    kind = ObjectKind.PERSISTENT_VOLUME_CLAIM
    return {volume: ObjectKey(kind, namespace, name) for volume, name in names.items() if name}


def _keys(pod: Pod) -> list[ObjectKey]:
    """Everything that a pod refers to."""
    others = (ref.key_in(pod.metadata.namespace) for ref in referenced_objects(pod))
    return sorted({*others, *_claim_keys(pod).values()})


class Difference(NamedTuple):
    """Objects to watch and to watch no longer, after a change of one pod."""

    wanted: frozenset[ObjectKey]
    """Nobody has referred to these before."""
    unwanted: frozenset[ObjectKey]
    """Nobody refers to these any more."""


class References:
    """Number of pods of this node that refer to each object (pkg/kubelet/util/manager, objectCache)."""

    def __init__(self) -> None:
        self._of_pod: dict[str, frozenset[ObjectKey]] = {}
        """By UID."""
        self._counts: Counter[ObjectKey] = Counter()

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._counts

    def state(self, uid: str, keys: Iterable[ObjectKey]) -> Difference:
        """The pod refers to exactly these from now on; to none of them: it has gone."""
        before, now = self._of_pod.pop(uid, frozenset()), frozenset(keys)
        if now:
            self._of_pod[uid] = now
        wanted = frozenset(key for key in now - before if key not in self._counts)
        self._counts.update(now - before)
        self._counts.subtract(before - now)
        unwanted = frozenset(key for key in before - now if not self._counts[key])
        for key in unwanted:
            del self._counts[key]
        return Difference(wanted, unwanted)
