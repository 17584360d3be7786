"""The agent without its counters, for `tests.bench.counting`: `python -m tests.bench.uncounted run --config FILE`."""

from __future__ import annotations

import sys

from ipc.link.shm.metric_cells import Counter, Histogram
from supervisor.__main__ import main


def _nothing(_counter: object, _amount: float = 1.0) -> None:
    pass


if __name__ == "__main__":
    for kind, names in ((Counter, ("inc", "set")), (Histogram, ("observe",))):
        for name in names:
            setattr(kind, name, _nothing)
    sys.exit(main())
