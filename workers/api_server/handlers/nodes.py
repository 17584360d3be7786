"""The node as a v1 Node: its resources, conditions, addresses, versions and images, put together when somebody asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web

from ipc.host.clock import rfc3339
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.nodestatus.conditions import READY, set_ready, with_conditions
from ipc.k8s.nodestatus.node import Node, NodeCondition, NodeSpec, NodeStatus
from ipc.k8s.resources import registry
from ipc.link.messages.api_server import AgentChanged
from workers.api_server.core.query import flag, integer
from workers.api_server.core.status_errors import not_found
from workers.api_server.handlers.node_watch import NodeVersions, NodeWatches
from workers.api_server.printers.representation import Representation, representation
from workers.api_server.store.selectors import all_hold, parse_field_selector, parse_label_selector
from workers.api_server.store.site import AppState, begin_stream, json_answer
from workers.api_server.store.watch import MAX_WATCH_S
from workers.kubecontainer.runtime import RuntimeCallError
from workers.nodestatus.addresses import daemon_endpoints, node_addresses
from workers.nodestatus.images import StoredImage, node_images
from workers.nodestatus.machine import node_limits, set_machine_info
from workers.nodestatus.readiness import ready_errors
from workers.nodestatus.version import set_versions
from workers.stats.machine import read_machine, read_versions, usable_machine

RUNTIME: Final = "podman"


class Nodes:
    """The handlers. They remember conditions, so that these know since when they hold."""

    def __init__(self, site: AppState) -> None:
        self._site = site
        self._conditions: tuple[NodeCondition, ...] = ()
        self._versions = NodeVersions(site.clock)
        self._watches = NodeWatches(self._node, self._is_ready, site.clock)

    async def list(self, request: web.Request) -> web.StreamResponse:
        is_wanted = _selection(request.query)
        shown = representation(request, registry.NODES, self._site.clock)
        if flag(request.query, "watch"):
            return await self._watch(request, is_wanted, shown)
        node = await self._node()
        items = [msgspec.json.encode(node)] if is_wanted(node) else []
        return json_answer(shown.many("Node", "v1", node.metadata.resource_version, items))

    async def one(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name != self._site.settings.node_name:
            raise not_found("nodes", name)
        node = await self._node()
        shown = representation(request, registry.NODES, self._site.clock)
        return json_answer(shown.one(msgspec.json.encode(node), node.metadata.resource_version))

    async def _watch(
        self, request: web.Request, is_wanted: Callable[[Node], bool], shown: Representation
    ) -> web.StreamResponse:
        query = request.query
        seen = integer(query, "resourceVersion") or ""
        bookmarks = flag(query, "allowWatchBookmarks")
        timeout_s = integer(query, "timeoutSeconds", low=1) or MAX_WATCH_S
        await self._site.agent()
        response = await begin_stream(request, "application/json")
        await self._watches.stream(
            response.write,
            is_wanted=is_wanted,
            shown=shown.changed,
            seen=str(seen),
            bookmarks=bookmarks,
            timeout_s=timeout_s,
        )
        return response

    def _is_ready(self) -> bool:
        agent = self._site.store.agent
        return agent is not None and agent.runtime_healthy

    async def _node(self) -> Node:
        site, agent = self._site, await self._site.agent()
        machine, versions = await asyncio.to_thread(lambda: (read_machine(), read_versions()))
        images = await self._images()
        status = NodeStatus(
            addresses=node_addresses(site.board.host_ips, site.settings.node_name),
            daemon_endpoints=daemon_endpoints(site.settings.server.secure_port),
        )
        limits = node_limits(site.settings.node, site.settings.max_pods, agent.unhealthy_devices)
        status, _ = set_machine_info(status, usable_machine(machine), limits, site.settings.node_name)
        status = set_versions(
            status,
            versions,
            runtime=RUNTIME,
            runtime_version=agent.runtime_version,
            kubelet_version=f"v{agent.version}",
        )
        status = self._with_conditions(status, agent)
        labels = {
            "kubernetes.io/hostname": site.settings.node_name,
            "kubernetes.io/os": versions.operating_system,
            "kubernetes.io/arch": versions.architecture,
        }
        # As old as the instance, whose key was made at its first start.
        made_at = site.settings.label_key.made_at or agent.started_at
        metadata = ObjectMeta(name=site.settings.node_name, labels=labels, creation_timestamp=rfc3339(made_at))
        spec = NodeSpec(unschedulable=bool(agent.going_down))
        status = msgspec.structs.replace(status, images=node_images(images))
        return self._versions.numbered(Node(metadata=metadata, spec=spec, status=status))

    async def _images(self) -> tuple[StoredImage, ...]:
        """None when Podman does not answer, as upstream."""
        try:
            return await self._site.podman.images()
        except RuntimeCallError:
            return ()

    def _with_conditions(self, status: NodeStatus, agent: AgentChanged) -> NodeStatus:
        """Conditions of pressure come from the master, Ready is what the agent knows of Podman."""
        now = rfc3339(self._site.clock.now().wall)
        pressures = tuple(msgspec.structs.replace(each, last_heartbeat_time=now) for each in agent.conditions)
        ready = tuple(each for each in self._conditions if each.type == READY) or _first_ready(agent)
        conditions: tuple[NodeCondition, ...] = (*pressures, *ready)
        last = self._site.board.last_relist
        errors = ready_errors(
            runtime_problem="" if agent.runtime_healthy else agent.runtime_message or "Podman does not answer",
            network_problem=agent.network_problem,
            going_down=agent.going_down,
            relist_age_s=self._site.clock.now().mono - last if last else None,
            quiet_period_s=self._site.quiet_relist_period_s,
        )
        conditions, _ = set_ready(conditions, errors=errors, capacity=status.capacity, now=now)
        self._conditions = conditions
        return with_conditions(status, conditions)


def _first_ready(agent: AgentChanged) -> tuple[NodeCondition, ...]:
    """Ready as it was before anybody has asked: since the agent's start, or since Podman is silent."""
    since = agent.started_at if agent.runtime_healthy else agent.runtime_silent_since or agent.started_at
    status = "True" if agent.runtime_healthy else "False"
    return (NodeCondition(type="Ready", status=status, last_transition_time=rfc3339(since)),)


def _selection(query: Mapping[str, str]) -> Callable[[Node], bool]:
    """Whether the selectors of a query select the Node. Raises ApiError 400."""
    labels = parse_label_selector(query.get("labelSelector", ""))
    fields = parse_field_selector(query.get("fieldSelector", ""), registry.NODES.fields)

    def is_wanted(node: Node) -> bool:
        unschedulable = str(bool(node.spec.unschedulable)).lower()
        values = {"metadata.name": node.metadata.name, "spec.unschedulable": unschedulable}
        return all_hold(labels, node.metadata.labels) and all_hold(fields, values)

    return is_wanted
