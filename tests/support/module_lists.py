"""The agent, whose children write down at their end which modules they have imported.

python -m tests.support.module_lists run --config FILE
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from supervisor.__main__ import load_worker_main, run_command

if TYPE_CHECKING:  # as little as the agent has imported when it begins
    from ipc.link.wire.boot import ChildContext, Role, WorkerMain

DIRECTORY_VARIABLE: Final = "ROOTLET_TEST_MODULE_LISTS"


def listing(worker_main: WorkerMain) -> WorkerMain:
    """A worker's main that writes a file for each child, named after its role and pid."""

    def main(context: ChildContext) -> int:
        try:
            return worker_main(context)
        finally:
            file = Path(os.environ[DIRECTORY_VARIABLE], f"{context.role.name}-{os.getpid()}")
            file.write_text("\n".join(sys.modules))

    return main


def read_lists(directory: Path) -> dict[Role, set[str]]:
    """Modules of every role, of all of its processes together."""
    from ipc.link.wire.boot import Role

    found: dict[Role, set[str]] = {}
    for file in directory.iterdir():
        found.setdefault(Role[file.name.partition("-")[0]], set()).update(file.read_text().split("\n"))
    return found


if __name__ == "__main__":
    sys.exit(run_command(sys.argv[1:], lambda: listing(load_worker_main())))
