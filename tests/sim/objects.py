"""ConfigMaps of the simulation: they come, change and go, and pods refer to them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.config_objects import ConfigMap
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.env import ConfigMapEnvSource, EnvFromSource
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ConfigObjects, ObjectKind, referenced_objects
from ipc.link.messages.api_server import PodChanged
from ipc.link.messages.pod_worker import SyncPod, WorkType
from tests.sim.watch import TERMINAL

NEEDED: Final = "needed"
"""Without it a container cannot be made. It is there once it is quiet."""
OPTIONAL: Final = "optional"
REFERRING: Final = 0.5
"""Part of the pods that refer to any."""


class SimObjects:
    """Objects as the manifests state them, by name."""

    def __init__(self, rng: random.Random) -> None:
        self.stated: dict[str, ConfigMap] = {}
        self._rng = rng
        self._edits = 0

    def change(self) -> None:
        """One of them comes, changes or goes."""
        name = self._rng.choice((NEEDED, NEEDED, OPTIONAL))
        if name in self.stated and self._rng.random() < 0.4:
            del self.stated[name]
        else:
            self._state(name)

    def settle(self) -> None:
        """Nobody waits in vain from here on."""
        self._state(NEEDED)

    def refer(self, pod: Pod) -> Pod:
        """Perhaps its containers take their environment from them."""
        if self._rng.random() >= REFERRING:
            return pod
        return msgspec.structs.replace(
            pod, spec=msgspec.structs.replace(pod.spec, containers=tuple(map(self._referring, pod.spec.containers)))
        )

    def _state(self, name: str) -> None:
        self._edits += 1
        metadata = ObjectMeta(name=name, namespace="default")
        self.stated[name] = ConfigMap(metadata=metadata, data={"edit": str(self._edits)})

    def _referring(self, container: Container) -> Container:
        name = self._rng.choice((NEEDED, OPTIONAL))
        source = EnvFromSource(config_map_ref=ConfigMapEnvSource(name=name, optional=name == OPTIONAL))
        return msgspec.structs.replace(container, env_from=(source,))


def wrong_objects(sync: SyncPod, stated: Mapping[str, ConfigMap], *, sources_ready: bool) -> str:
    """Objects that a sync has got and should not have, or the other way round; empty when all is well."""
    every = frozenset() if sync.pod is None or sync.kind is not WorkType.SYNC else referenced_objects(sync.pod)
    references = {ref for ref in every if ref.kind is ObjectKind.CONFIG_MAP}
    got = msgspec.structs.replace(  # claims are `tests.sim.claims`' business, Secrets `tests.sim.cluster.values`'
        sync.objects, claims={}, secrets={}, unknown=frozenset(ref for ref in sync.objects.unknown if ref in references)
    )
    wanted = ConfigObjects(
        config_maps={ref.name: stated[ref.name] for ref in sorted(references) if ref.name in stated},
        unknown=frozenset(ref for ref in references if ref.name not in stated and not sources_ready),
        cluster=sync.objects.cluster,
    )
    return "" if got == wanted else f"{_words(got)} instead of {_words(wanted)}"


def stale_objects(
    pod: Pod, told: PodChanged | None, newest: SyncPod | None, stated: Mapping[str, ConfigMap]
) -> Iterator[str]:
    """Running pods have been synced with the ConfigMaps as they are now."""
    if told is None or told.status.phase in TERMINAL or not referenced_objects(pod):
        return
    if newest is None or newest.kind is not WorkType.SYNC:
        yield "it refers to ConfigMaps and was not synced"
    elif why := wrong_objects(newest, stated, sources_ready=True):
        yield f"its last sync had {why}"


def _words(objects: ConfigObjects) -> str:
    found = ", ".join(f"{name} {dict(each.data)}" for name, each in objects.config_maps.items()) or "nothing"
    return f"{found} (unknown: {sorted(ref.name for ref in objects.unknown)})"
