"""Names by which others call pods of this node: a cluster calls a static pod by the name of its mirror."""

from __future__ import annotations

from typing import Final

from ipc.link.messages.api_server import PodChanged
from workers.api_server.store.objects import StoredObject
from workers.api_server.store.site import AppState

NO_POD: Final = "pod does not exist"
_STATIC_SOURCES: Final = frozenset({"file", "http"})


async def find_pod(site: AppState, namespace: str, name: str) -> StoredObject[PodChanged] | None:
    """The pod of that name, or the static pod whose mirror has it (pkg/kubelet/pod/pod_manager.go, TranslatePodUID
    goes by UID; here a mirror's name differs, too)."""
    pods = (await site.synced()).pods
    found = pods.find(namespace, name)
    suffix = f"-{site.settings.node_name.lower()}"
    if found is not None or not name.endswith(suffix):
        return found
    static = pods.find(namespace, name.removesuffix(suffix))
    return static if static is not None and static.message.source in _STATIC_SOURCES else None
