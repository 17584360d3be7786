"""A copy of the cluster's RuntimeClasses, told to the master whole: pods name them, and there are few."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ipc.k8s.api.decode import decode_server_object
from ipc.k8s.api.v1.scheduling import RuntimeClass
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from ipc.link.messages.cluster import ObjectStated
from workers.cluster.objects.object_watches import Tell, withdrawn
from workers.kubeclient.protocol import Client
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import RUNTIME_CLASSES


class RuntimeClasses:
    """The sink of its reflector."""

    def __init__(self, client: Client, tell: Tell) -> None:
        self._tell = tell
        self._names: set[str] = set()
        decode = functools.partial(decode_server_object, struct=RuntimeClass)
        self._reflector = Reflector[RuntimeClass](client, RUNTIME_CLASSES, decode=decode, sink=self)
        self.synced = self._reflector.synced

    async def run(self) -> None:
        """Follow the server for ever."""
        await self._reflector.run()

    def begin_anew(self) -> None:
        """List everything, whatever its version."""
        self._reflector.begin_anew()

    def replaced(self, items: Sequence[RuntimeClass]) -> None:
        for name in self._names - {item.metadata.name for item in items}:
            self._withdraw(name)
        for item in items:
            self.changed(item)

    def changed(self, item: RuntimeClass) -> None:
        self._names.add(item.metadata.name)
        self._tell(ObjectStated(runtime_class=item))

    def deleted(self, item: RuntimeClass) -> None:
        self._withdraw(item.metadata.name)

    def _withdraw(self, name: str) -> None:
        self._names.discard(name)
        self._tell(withdrawn(ObjectKey(ObjectKind.RUNTIME_CLASS, "", name)))
