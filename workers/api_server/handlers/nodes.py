"""The node as a v1 Node: its resources, conditions, addresses, versions and images, put together when somebody asks."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import platform
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web

from ipc.api.v1.meta import ObjectMeta
from ipc.host.clock import rfc3339
from ipc.messages.api_server import AgentChanged
from ipc.nodestatus.conditions import READY, set_ready, with_conditions
from ipc.nodestatus.images import StoredImage, node_images
from ipc.nodestatus.machine import NodeLimits, set_machine_info
from ipc.nodestatus.node import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeSpec,
    NodeStatus,
)
from ipc.nodestatus.version import HostVersions, set_versions
from ipc.resources import registry
from ipc.stats.machine_info import MachineInfo
from workers.api_server.core.query import flag, integer
from workers.api_server.core.status_errors import not_found
from workers.api_server.handlers.health import pleg_problem
from workers.api_server.handlers.node_watch import NodeVersions, NodeWatches
from workers.api_server.printers.representation import Representation, representation
from workers.api_server.store.selectors import all_hold, parse_field_selector, parse_label_selector
from workers.api_server.store.site import AppState, begin_stream, json_answer
from workers.api_server.store.watch import MAX_WATCH_S
from workers.kubecontainer.runtime import RuntimeCallError
from workers.stats.machine import read_machine

RUNTIME: Final = "podman"
HARDWARE: Final = ("cpu", "memory")
"""Resources of which the machine tells the capacity."""
_ARCHITECTURES: Final[Mapping[str, str]] = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
"""Go's names of the machine's."""
SHUTTING_DOWN: Final = "node is shutting down"
"""pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go, ShutdownStatus."""


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
            addresses=_addresses(site.board.host_ips, site.settings.node_name),
            daemon_endpoints=_endpoints(site.settings.server.secure_port),
        )
        status, _ = set_machine_info(status, self._usable(machine), self._limits(), site.settings.node_name)
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
        metadata = ObjectMeta(name=site.settings.node_name, labels=labels, creation_timestamp=rfc3339(agent.started_at))
        spec = NodeSpec(unschedulable=bool(agent.going_down))
        status = msgspec.structs.replace(status, images=node_images(images))
        return self._versions.numbered(Node(metadata=metadata, spec=spec, status=status))

    def _usable(self, machine: MachineInfo) -> MachineInfo:
        """CPUs that pods may have: this agent may be bound to some of the machine's."""
        return msgspec.structs.replace(machine, num_cores=len(os.sched_getaffinity(0)))

    def _limits(self) -> NodeLimits:
        settings = self._site.settings
        known = settings.node.capacity.items()
        return NodeLimits(
            max_pods=settings.max_pods,
            capacity={name: amount for name, amount in known if name not in HARDWARE},
            reserved=settings.node.reserved,
        )

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
        errors = [] if agent.runtime_healthy else [agent.runtime_message or "Podman does not answer"]
        if agent.going_down == "shutdown":
            errors.append(SHUTTING_DOWN)
        if problem := pleg_problem(self._site):
            errors.append(f"PLEG is not healthy: {problem}")
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


def _addresses(ips: tuple[str, ...], name: str) -> tuple[NodeAddress, ...]:
    found = (ip for ip in ips if not ipaddress.ip_address(ip).is_loopback)
    return (*(NodeAddress(type="InternalIP", address=ip) for ip in found), NodeAddress(type="Hostname", address=name))


def _endpoints(port: int) -> NodeDaemonEndpoints:
    """setters.go, DaemonEndpoints; none while the port is off."""
    return NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port) if port else None)


def read_versions() -> HostVersions:
    """Versions of this host. Reads files: not for the loop."""
    host = os.uname()
    try:
        image = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        image = ""
    return HostVersions(
        kernel=host.release,
        os_image=image,
        operating_system=host.sysname.lower(),
        architecture=_ARCHITECTURES.get(host.machine, host.machine),
    )
