"""Functions that make the cells of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ipc.resources import registry
from ipc.text.json_types import Json
from workers.api_server.printers.config_objects import (
    config_map_row,
    namespace_row,
    priority_class_row,
    runtime_class_row,
    secret_row,
)
from workers.api_server.printers.events import by_time, event_row
from workers.api_server.printers.nodes import node_row
from workers.api_server.printers.persistent_volumes import claim_row, volume_row
from workers.api_server.printers.pods import pod_row
from workers.api_server.printers.workers import worker_row

Row = Callable[[Json, float], Sequence[object]]

ROWS: Final[Mapping[str, Row]] = {
    registry.PODS.plural: pod_row,
    registry.NODES.plural: node_row,
    registry.EVENTS.plural: event_row,
    registry.NAMESPACES.plural: namespace_row,
    registry.CONFIG_MAPS.plural: config_map_row,
    registry.SECRETS.plural: secret_row,
    registry.PRIORITY_CLASSES.plural: priority_class_row,
    registry.RUNTIME_CLASSES.plural: runtime_class_row,
    registry.PERSISTENT_VOLUMES.plural: volume_row,
    registry.PERSISTENT_VOLUME_CLAIMS.plural: claim_row,
    registry.WORKERS.plural: worker_row,
}
"""By plural: from an object as JSON and the time in epoch seconds to a cell for each of the kind's columns."""
ORDERS: Final[Mapping[str, Callable[[Json], tuple[str, int]]]] = {registry.EVENTS.plural: by_time}
"""Sort keys of rows, for kinds that are not shown by namespace and name."""
