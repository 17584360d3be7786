"""Lists of pods: those that are wanted, that run, that have resources, and the first kubelet's ``/podInfo``."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from aiohttp import web

from ipc.host.text.json_types import Json
from ipc.k8s.api.pod_containers import every_status
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import TERMINAL_PHASES, ContainerStatus, PodStatus
from ipc.k8s.podresources.allocation import update_pod_from_allocation
from ipc.link.messages.api_server import PodChanged
from workers.api_server.core.route import plain_text
from workers.api_server.core.status_errors import ApiError
from workers.api_server.kubelet.pod_names import NO_POD, find_pod
from workers.api_server.store.objects import StoredObject
from workers.api_server.store.site import AppState, json_answer

_LIST_HEAD = b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":['
_LIST_END = b"]}"


class Pods:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def pods(self, _request: web.Request) -> web.Response:
        """v1 PodList of the desired pods, with our own status (pkg/kubelet/server/server.go, getPods). Its items
        have a kind, which upstream's lack."""
        found = (await self._site.synced()).pods.select(lambda _: True)
        return json_answer(b"".join((_LIST_HEAD, b",".join(pod.json for pod in found), _LIST_END)))

    async def running_pods(self, _request: web.Request) -> web.Response:
        """Names and images of what runs (getRunningPods)."""
        found = (await self._site.synced()).pods.select(lambda _: True)
        items = (running_pod(pod.message) for pod in found)
        encoded = b",".join(msgspec.json.encode(item) for item in items if item is not None)
        return json_answer(b"".join((_LIST_HEAD, encoded, _LIST_END)))

    async def allocated_pods(self, _request: web.Request) -> web.Response:
        """Pods that take part of the node, each with the resources that it was allocated and without its status
        (getAllocatedPods of 1.37, behind the gate KubeletAllocatedPodsEndpoint there)."""
        found = (await self._site.synced()).pods.select(lambda _: True)
        allocated = (allocated_pod(pod) for pod in found)
        items = b",".join(msgspec.json.encode(pod) for pod in allocated if pod is not None)
        return json_answer(b"".join((_LIST_HEAD, items, _LIST_END)))

    async def allocated_pod(self, request: web.Request) -> web.Response:
        """One of these, by its namespace and name, its UID, or all three."""
        where = request.match_info
        uid = where.get("uid")
        if "name" in where:
            stored = await find_pod(self._site, where["namespace"], where["name"])
        else:
            stored = (await self._site.synced()).pods.get(where["uid"])
        pod = allocated_pod(stored) if stored is not None and uid in (None, stored.key) else None
        return plain_text(404, NO_POD) if pod is None else json_answer(msgspec.json.encode(pod))

    async def pod_info(self, request: web.Request) -> web.Response:
        """Container name to its status: ``GET /podInfo?podID=NAME&podNamespace=NS`` of the first kubelet
        (pkg/kubelet/server.go of 0.5, handlePodInfo)."""
        name = request.query.get("podID", "")
        if not name:
            raise ApiError(400, "Missing 'podID=' query entry.")
        namespace = request.query.get("podNamespace", "default")
        found = (await self._site.synced()).pods.find(namespace, name)
        if found is None:
            return plain_text(404, "Pod does not exist")
        return json_answer(pod_info(found.message))


def running_pod(pod: PodChanged) -> Json | None:
    """A v1 Pod of that which Podman has of it; None when nothing of it is there."""
    running = [each for each in every_status(pod.status) if each.state.running is not None]
    if pod.sandbox is None and not running:
        return None
    meta = pod.pod.metadata
    containers = [{"name": each.name, "image": _image(each), "resources": {}} for each in running]
    return {
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "spec": {"containers": containers or None},
        "status": {},
    }


def allocated_pod(stored: StoredObject[PodChanged]) -> Pod | None:
    """The v1 Pod with the resources that it was allocated and without a status; None of one that takes no part of the
    node any more (pkg/kubelet/allocation/allocation_manager.go, getAllocatedPods)."""
    message, shown = stored.message, msgspec.json.decode(stored.json, type=Pod)
    if message.status.phase in TERMINAL_PHASES:
        return None
    pod = msgspec.structs.replace(shown, status=PodStatus())
    return pod if message.allocated is None else update_pod_from_allocation(pod, message.allocated)


def pod_info(pod: PodChanged) -> Mapping[str, ContainerStatus]:
    """Status of each container by its name."""
    return {each.name: each for each in every_status(pod.status)}


def _image(status: ContainerStatus) -> str:
    return status.image_id or status.image
