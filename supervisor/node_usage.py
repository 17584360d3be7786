"""What the pods of this node ask for together, so that one that comes need not look at all the others.

Holds state, no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

Requests = Mapping[str, int]
"""By resource, in the units of `ipc.pod_requests`."""


class NodeUsage:
    """An upper bound: pods that go down count until nothing of them is left."""

    def __init__(self) -> None:
        self._requests: dict[str, Requests] = {}
        self._total: Counter[str] = Counter()

    def put(self, uid: str, requests: Requests) -> None:
        """From now on that pod asks for this much."""
        self.drop(uid)
        self._requests[uid] = requests
        self._total.update(requests)

    def drop(self, uid: str) -> None:
        """Nothing of it is left; one that is not known does no harm."""
        self._total.subtract(self._requests.pop(uid, {}))

    def surely_fits(self, uid: str, requests: Requests, capacity: Requests) -> bool:
        """Whether that pod has room beside all others, whatever becomes of them."""
        own = self._requests.get(uid, {})
        return all(
            self._total[name] - own.get(name, 0) + asked <= capacity.get(name, 0) for name, asked in requests.items()
        )
