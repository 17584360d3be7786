"""Catalogue of the links: which messages the master and the children of a role send one another.

Both ends take their types from here, so they cannot differ. Commands go down, from the master; reports come up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Union, get_args

from ipc.link.messages.api_server import AdminRequest, ApiServerFeed, ApiServerRequest, EventChanged, PackedEventChanged
from ipc.link.messages.base import Ready
from ipc.link.messages.dialer import DialerAnswer, DialerCommand, DialerReport, MakeSocket
from ipc.link.messages.node_worker import NodeWorkerCommand, NodeWorkerEvent, NodeWorkerReport
from ipc.link.messages.pod_worker import PodWorkerCommand, PodWorkerEvent, PodWorkerReport
from ipc.link.messages.zygote import ZygoteCommand, ZygoteReport
from ipc.link.wire.boot import Role

if TYPE_CHECKING:
    from typing_extensions import TypeForm

C_co = TypeVar("C_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)


class LinkTypes(Generic[C_co, R_co]):
    """Unions of the messages on one link."""

    def __init__(self, commands: TypeForm[C_co], reports: TypeForm[R_co]) -> None:
        """``commands``: messages that the serving end takes. ``reports``: those that it answers and reports."""
        self.commands = commands
        self.reports = reports

    @property
    def sent(self) -> Any:
        """Commands as the master sends them: to who is fed some were packed before."""
        fed = EventChanged in get_args(self.commands)
        return Union[self.commands, PackedEventChanged] if fed else self.commands  # noqa: UP007 - of values


POD_WORKER: Final = LinkTypes[PodWorkerCommand, PodWorkerReport](PodWorkerCommand, PodWorkerReport)
NODE_WORKER: Final = LinkTypes[NodeWorkerCommand, NodeWorkerReport](NodeWorkerCommand, NodeWorkerReport)
API_SERVER: Final = LinkTypes[ApiServerFeed, ApiServerRequest](ApiServerFeed, ApiServerRequest)
DIALER: Final = LinkTypes[DialerCommand, DialerReport](DialerCommand, DialerReport)
ZYGOTE: Final = LinkTypes[ZygoteCommand, ZygoteReport](ZygoteCommand, ZygoteReport)
DIALING: Final = LinkTypes[MakeSocket, DialerAnswer](MakeSocket, DialerAnswer)
"""Packets between the dialer and the processes that connect into a pod's network, without the master."""

ChildCommand = PodWorkerCommand | NodeWorkerCommand | ApiServerFeed | PackedEventChanged | DialerCommand
"""Messages of the master to a child of any role."""
ChildEvent = PodWorkerEvent | NodeWorkerEvent | AdminRequest
"""Messages of a child after Ready."""
ChildReport = Ready | ChildEvent

LINKS: Final[Mapping[Role, LinkTypes[ChildCommand, ChildReport]]] = {
    Role.POD_WORKER: POD_WORKER,
    Role.NODE_WORKER: NODE_WORKER,
    Role.API_SERVER: API_SERVER,
    Role.DIALER: DIALER,
}
"""Links of every role but ``Role.EXEC``, which becomes another program and has no link."""
