"""Steps of Podman's user namespace without one: no process is started, and nothing is mounted or given to anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from workers.fs.disk_usage import bytes_and_inodes_at_least, used_bytes, used_bytes_and_inodes
from workers.userns.entry import STEPS
from workers.userns.steps.first_owner import look_into_image
from workers.userns.steps.reading import read_file
from workers.userns.steps.removal import remove
from workers.userns.unshare import Step, Unshare, UnshareError

_DONE_HERE: Final[Mapping[str, Callable[..., object]]] = {
    step.__name__: step for step in (read_file, remove, used_bytes, used_bytes_and_inodes, bytes_and_inodes_at_least)
}
"""Steps that need no other user in a directory of the test's own."""
_NO_ACCOUNTS: Final = ("", "", None)


class StepsHere(Unshare, frozen=True):
    def run(self, steps: Sequence[Step]) -> tuple[Any, ...]:
        """As `Unshare.run`. An image has neither users nor the directory that is asked for."""
        done: list[object] = []
        for name, arguments in steps:
            assert name in STEPS
            try:
                done.append(_DONE_HERE.get(name, _nothing)(**arguments))
            except OSError as error:
                raise UnshareError(f"{error.filename}: {error.strerror}", len(done)) from error
            if name == look_into_image.__name__:
                done[-1] = _NO_ACCOUNTS
        return tuple(done)


def _nothing(**_: object) -> None:
    return None
