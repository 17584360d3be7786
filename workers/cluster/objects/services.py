"""A copy of the cluster's services that have an address, from which pods get variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from workers.cluster.objects.service_variables import HEADLESS, Service
from workers.kubeclient.protocol import Client
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import SERVICES


class Services:
    """The copy; the sink of its reflector."""

    def __init__(self, client: Client, changed: Callable[[Collection[str]], None]) -> None:
        """``changed``: called with the namespaces in which variables may be others."""
        self._tell = changed
        self._found: dict[tuple[str, str], Service] = {}
        decode = msgspec.json.Decoder(Service).decode
        selector = f"spec.clusterIP!={HEADLESS}"
        self._reflector = Reflector[Service](client, SERVICES, field_selector=selector, decode=decode, sink=self)
        self.synced = self._reflector.synced

    async def run(self) -> None:
        """Follow the server for ever."""
        await self._reflector.run()

    def begin_anew(self) -> None:
        """List everything, whatever its version."""
        self._reflector.begin_anew()

    def all(self) -> Collection[Service]:
        """In the order in which they came to be known."""
        return self._found.values()

    def replaced(self, items: Sequence[Service]) -> None:
        before, self._found = self._found, {_key(item): item for item in items}
        if before != self._found:
            self._tell({namespace for namespace, _ in before.keys() | self._found.keys()})

    def changed(self, item: Service) -> None:
        if self._found.get(_key(item)) != item:
            self._found[_key(item)] = item
            self._tell({item.metadata.namespace})

    def deleted(self, item: Service) -> None:
        if self._found.pop(_key(item), None) is not None:
            self._tell({item.metadata.namespace})


def _key(service: Service) -> tuple[str, str]:
    return service.metadata.namespace, service.metadata.name
