"""One watch for every ConfigMap and Secret that a pod refers to (pkg/kubelet/util/manager/watch_based_manager.go).

An immutable object is not watched any longer than until it was read. What nobody refers to is withdrawn.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Final

from ipc.k8s.api.decode import decode_server_object
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from ipc.link.eventloop.tasks import BackgroundTasks, first_of, restarted
from ipc.link.messages.cluster import ObjectStated, ObjectWithdrawn
from workers.kubeclient.errors import check_name
from workers.kubeclient.protocol import Client
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import CONFIG_MAPS, SECRETS, Resource

WATCHED: Final = (ObjectKind.CONFIG_MAP, ObjectKind.SECRET)
Tell = Callable[[ObjectStated | ObjectWithdrawn], None]


class _Watch:
    """One object: the sink of its reflector."""

    def __init__(self, key: ObjectKey, tell: Tell, is_read: asyncio.Event) -> None:
        self._key = key
        self._tell = tell
        self.is_read = is_read
        self.is_immutable = asyncio.Event()
        self.reflector: Reflector[ConfigMap | Secret] | None = None
        """None while it is not followed."""

    def replaced(self, items: Sequence[ConfigMap | Secret]) -> None:
        if items:
            self.changed(items[0])
        else:
            self._tell(withdrawn(self._key))
        self.is_read.set()

    def changed(self, item: ConfigMap | Secret) -> None:
        self._tell(ObjectStated(config_map=item) if isinstance(item, ConfigMap) else ObjectStated(secret=item))
        if item.immutable:
            self.is_immutable.set()

    def deleted(self, item: ConfigMap | Secret) -> None:
        self._tell(withdrawn(self._key))


class ObjectWatches:
    """The watches, by object."""

    def __init__(self, client: Client, tell: Tell, tasks: BackgroundTasks) -> None:
        self._client = client
        self._tell = tell
        self._tasks = tasks
        self._watches: dict[ObjectKey, tuple[_Watch, asyncio.Task[None]]] = {}

    def begin(self, key: ObjectKey) -> None:
        """Watch a ConfigMap or Secret from now on."""
        watch = _Watch(key, self._tell, asyncio.Event())
        self._watches[key] = watch, self._spawn(key, watch)

    def end(self, key: ObjectKey) -> None:
        """Nobody refers to it any more."""
        _, task = self._watches.pop(key)
        task.cancel()
        self._tell(withdrawn(key))

    def begin_anew(self) -> None:
        """Read every object again, whatever its version; an immutable one may be another one of its name."""
        for key, (watch, task) in self._watches.items():
            if watch.reflector is not None:
                watch.reflector.begin_anew()
            else:
                task.cancel()
                self._watches[key] = watch, self._spawn(key, watch)

    def is_read(self, key: ObjectKey) -> bool:
        """Whether `read` returns at once."""
        return key not in self._watches or self._watches[key][0].is_read.is_set()

    async def read(self, key: ObjectKey) -> None:
        """Returns when the server has said whether it is there; one that is not watched is not waited for."""
        if key in self._watches:
            await self._watches[key][0].is_read.wait()

    def _spawn(self, key: ObjectKey, watch: _Watch) -> asyncio.Task[None]:
        name = f"watch of {key}"
        return self._tasks.spawn(restarted(lambda: self._follow(key, watch), name=name), name=name)

    async def _follow(self, key: ObjectKey, watch: _Watch) -> None:
        """Until the object is known to be immutable."""
        resource, decode = _RESOURCES[key.kind]

        def decoded(data: bytes) -> ConfigMap | Secret:
            found = decode(data)
            check_name(found.metadata.name, key.name)
            return found

        watch.is_immutable.clear()
        watch.reflector = reflector = Reflector[ConfigMap | Secret](
            self._client, resource, namespace=key.namespace, name=key.name, decode=decoded, sink=watch
        )
        try:
            await first_of(reflector.run(), watch.is_immutable.wait())
        finally:
            watch.reflector = None


def withdrawn(key: ObjectKey) -> ObjectWithdrawn:
    """The message about an object that is not there."""
    return ObjectWithdrawn(kind=key.kind, namespace=key.namespace, name=key.name)


_RESOURCES: Final[dict[ObjectKind, tuple[Resource, Callable[[bytes], ConfigMap | Secret]]]] = {
    ObjectKind.CONFIG_MAP: (CONFIG_MAPS, functools.partial(decode_server_object, struct=ConfigMap)),
    ObjectKind.SECRET: (SECRETS, functools.partial(decode_server_object, struct=Secret)),
}
