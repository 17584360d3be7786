from __future__ import annotations

import msgspec
import pytest

from ipc.link.messages.node_worker import RuntimeHealth, ServiceSilent
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.pleg.runtime_state import RELIST_SLACK_S, RuntimeState

REQUEST_TIMEOUT_S = 120.0
STUCK_S = REQUEST_TIMEOUT_S + RELIST_SLACK_S
WELL = RuntimeHealth(healthy=True, version="4.3.1")
LATE = RuntimeCallError(ErrorKind.TIMEOUT, "list_containers", "too late")
SICK = RuntimeHealth(healthy=False, message=LATE.message)


def fresh() -> RuntimeState:
    return RuntimeState(REQUEST_TIMEOUT_S, now=0.0)


def test_only_news_is_told() -> None:
    state = fresh()
    assert state.version == ""
    assert state.relisted(1.0, "4.3.1") == (WELL,)
    assert state.version == "4.3.1"
    assert state.relisted(2.0, "4.3.1") == state.answered("4.3.1") == ()
    assert state.answered("5.4.2") == (RuntimeHealth(healthy=True, version="5.4.2"),)
    assert state.failed(3.0, LATE) == (SICK,)
    assert state.version == ""
    assert state.failed(4.0, LATE) == ()


def test_the_network_is_news_of_its_own_and_known_while_podman_is_silent() -> None:
    state = fresh()
    state.relisted(1.0, "4.3.1")
    without = RuntimeHealth(healthy=True, version="4.3.1", network_problem="no pasta")
    assert state.answered("4.3.1", "no pasta") == (without,)
    assert state.relisted(2.0, "4.3.1", "no pasta") == ()
    assert state.failed(3.0, LATE) == (msgspec.structs.replace(SICK, network_problem="no pasta"),)
    assert state.answered("4.3.1") == (WELL,)


@pytest.mark.parametrize(
    ("kind", "silence_s", "stuck"),
    [
        (ErrorKind.TIMEOUT, STUCK_S, True),
        (ErrorKind.TIMEOUT, STUCK_S - 0.1, False),
        (ErrorKind.UNAVAILABLE, STUCK_S, False),
        (ErrorKind.INTERNAL, STUCK_S, False),
    ],
)
def test_stuck_is_who_takes_requests_and_lists_nothing(kind: ErrorKind, silence_s: float, stuck: bool) -> None:
    state = fresh()
    state.relisted(100.0, "4.3.1")
    told = state.failed(100.0 + silence_s, RuntimeCallError(kind, "list_containers", "too late"))
    assert [type(report) for report in told] == [RuntimeHealth, ServiceSilent][: 1 + stuck]


def test_pings_that_are_answered_make_up_for_no_relist_and_it_is_told_again() -> None:
    state = fresh()
    state.relisted(0.0, "4.3.1")
    state.failed(STUCK_S - 1.0, LATE)
    state.answered("4.3.1")
    told = state.failed(STUCK_S, LATE)
    assert told == (SICK, ServiceSilent(message="no relist has succeeded for 150 s: too late"))
    assert state.failed(2 * STUCK_S - 1.0, LATE) == ()
    assert [type(report) for report in state.failed(2 * STUCK_S, LATE)] == [ServiceSilent]
