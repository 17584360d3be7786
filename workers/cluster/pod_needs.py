"""Needs of a pod before it can run here: its cluster's objects and tokens, and a Node with labels that it wants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.scheduling.node_affinity import matches_node
from workers.cluster.objects.objects import Objects


class PodNeeds:
    """`workers.cluster.pods.pod_source.Needs`."""

    def __init__(
        self,
        objects: Objects,
        node_name: str,
        labels: Callable[[], Mapping[str, str]],
        read_node: Callable[[], Awaitable[None]],
    ) -> None:
        """``labels``: those of the Node as it is known now. ``read_node`` asks for the Node, which is told as any news
        of it."""
        self._objects = objects
        self._node_name = node_name
        self._read_node = read_node
        self._labels = labels

    def fits(self, pod: Pod) -> bool:
        """See `Needs`."""
        return matches_node(pod.spec, self._labels(), self._node_name)

    async def see_node(self) -> None:
        """See `Needs`."""
        await self._read_node()

    def follow(self, pod: Pod, *, is_new: bool) -> bool:
        """See `Needs`."""
        return self._objects.follow(pod, is_new=is_new)

    async def need(self, pod: Pod) -> None:
        """See `Needs`."""
        await self._objects.need(pod)

    def forget(self, uid: str) -> None:
        """See `Needs`."""
        self._objects.forget(uid)
