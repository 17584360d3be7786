"""Ports of hooks, by number. Pure."""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.probe import LifecycleHandler
from workers.podhttp.endpoints import PortError, resolve_port


def with_port_number(handler: LifecycleHandler, container: Container) -> LifecycleHandler:
    """The hook with numbers in place of port names, so that it can be run without the manifest. An unknown name
    stays."""
    action = handler.http_get
    if action is None:
        return handler
    try:
        port = resolve_port(action.port, container)
    except PortError:
        return handler
    return msgspec.structs.replace(handler, http_get=msgspec.structs.replace(action, port=port))
