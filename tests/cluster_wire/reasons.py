"""Why our requests differ from a kubelet's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tests.cluster_wire.differences import Difference


@dataclass(frozen=True)
class Reason:
    """A reason, and the differences that it is the reason of: all three must match."""

    text: str
    kind: str = ""
    """Regular expression, found in the kind."""
    where: str = ""
    """Regular expression, found in what differs."""
    side: str = ""
    """Empty: either."""
    what: str = ""
    """Words for all that differs, where naming each would say less."""
    varies: bool = False
    """Whether a difference is there depends on the moment; the page says the reason once."""

    def holds_for(self, difference: Difference) -> bool:
        return (
            self.side in ("", difference.side)
            and re.search(self.kind, difference.kind) is not None
            and re.search(self.where, difference.what) is not None
        )


_POD_STATUS: Final = "^PATCH .*/pods/{name}/status$"
_NODE_STATUS: Final = "^PATCH .*/nodes/{name}/status$"

REASONS: Final[tuple[Reason, ...]] = (
    Reason("no device of a DRA driver is offered, so no slice of an earlier start is to be deleted", "resourceslices"),
    Reason("no CSI drivers run here, so none is looked up", "csidrivers"),
    Reason("a kubelet looks for it in a cache first: it is not Ready before it is there", "^GET .*csinodes", "queries"),
    Reason(
        "the copy that the watch keeps is compared instead; the UID in the patch protects another pod of that name",
        "^GET .*/pods/{name}$",
        varies=True,
    ),
    Reason(
        "the first watch brings what is there; a list comes only where a server has no streaming lists", "^GET .*ts$"
    ),
    Reason("told for every container; a kubelet's runtime told none", _POD_STATUS, "stopSignal", "ours"),
    Reason("what changes between two looks at the host is patched", _NODE_STATUS, varies=True),
    Reason("the recorded kubelet is older than the field", "^POST .*/nodes$", "runningInUserNamespace", "ours"),
    Reason("only root reads it", "^POST .*/nodes$", "systemUUID", "kubelet"),
    Reason("handlers are told as Podman has them: one, with user namespaces", "^POST .*/nodes$", "runtimeHandlers"),
    Reason("an event is about a pod as such, whichever version of it", "/events$", "resourceVersion", "kubelet"),
    Reason("whether the node was read again for a later status", "^GET .*/nodes/{name}$", "timeout", varies=True),
    Reason("whether a watch was resumed", "^WATCH ", "resourceVersion", varies=True),
)
