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

    def holds_for(self, difference: Difference) -> bool:
        return (
            self.side in ("", difference.side)
            and re.search(self.kind, difference.kind) is not None
            and re.search(self.where, difference.what) is not None
        )


REASONS: Final[tuple[Reason, ...]] = ()
