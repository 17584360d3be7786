"""How long calls of Podman may take, beside how long they do."""

from __future__ import annotations

from ipc.host.libpod.endpoints import DEADLINE_S, Kind
from tests.fakes.libpod_costs import CALL_COSTS

STRANGERS = 100_000


def test_a_list_has_time_for_the_containers_of_others() -> None:
    """Podman takes the lock of each before it looks at its labels."""
    assert CALL_COSTS["list containers"].of(STRANGERS) < DEADLINE_S[Kind.LIST]


def test_nothing_else_waits_longer_for_their_sake() -> None:
    assert DEADLINE_S[Kind.INSPECT] < DEADLINE_S[Kind.LIST] / 2
    assert DEADLINE_S[Kind.PING] < 5.0
