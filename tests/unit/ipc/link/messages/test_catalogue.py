"""Every message of every link is handled once at each end: what mypy cannot see of a dispatch is counted here."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any, get_args

import pytest

from ipc.link.messages import catalogue
from ipc.link.messages.api_server import AdminRequest, FeedMessage
from ipc.link.messages.base import Message, Ready, Shutdown
from ipc.link.messages.catalogue import LINKS, ChildEvent, ChildReport, LinkTypes
from ipc.link.messages.pod_worker import PodWork
from ipc.link.wire.boot import Role
from supervisor import wiring
from supervisor.control.admin_requests import AdminRequests
from supervisor.master import Master
from supervisor.processes.child_manager import ChildManager
from supervisor.processes.worker_pool import PoolCommand
from supervisor.processes.zygote import _Zygote
from supervisor.protocol.commands import LoopCommand
from workers.api_server.store.store import Store
from workers.node_worker import NodeWorker
from workers.pod_worker import PodWorker

MATCHES: tuple[tuple[Callable[..., Any], Any], ...] = (
    (Master.on_message, wiring.MasterReport),
    (wiring.loop_event, wiring.LoopReport),
    (wiring.carry_out, LoopCommand),
    (AdminRequests.take, AdminRequest),
    (ChildManager.on_zygote_report, catalogue.ZYGOTE.reports),
    (ChildManager._carry_out, PoolCommand),
    (_Zygote._handle, catalogue.ZYGOTE.commands),
    (PodWorker.dispatch, PodWork),
    (NodeWorker.serve, catalogue.NODE_WORKER.commands),
    (Store.take, FeedMessage),
)
"""Dispatching function -> union of what it takes. Each ends in ``assert_never``, so that mypy finds a missing case."""


def members(union: Any) -> set[str]:
    return {member.__name__ for member in get_args(union) or (union,)}


def unguarded_cases(function: Callable[..., Any], union: Any) -> Counter[str]:
    """Members of the union by the number of cases of a function's ``match`` that take every instance of them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    cases = [case for node in ast.walk(tree) if isinstance(node, ast.Match) for case in node.cases if not case.guard]
    patterns = (pattern for case in cases for pattern in ast.walk(case.pattern))
    named = [ast.unparse(pattern.cls) for pattern in patterns if isinstance(pattern, ast.MatchClass)]
    families = {each.__name__: {base.__name__ for base in each.__mro__} for each in get_args(union) or (union,)}
    return Counter(
        found for name in named for found in [member for member in families if name in families[member]] or [name]
    )


@pytest.mark.parametrize(("function", "union"), MATCHES, ids=[f"{function.__qualname__}" for function, _ in MATCHES])
def test_a_dispatch_has_one_case_for_each_message(function: Callable[..., Any], union: Any) -> None:
    assert unguarded_cases(function, union) == Counter(members(union))


def test_every_message_of_a_child_is_for_the_loop_or_for_the_master() -> None:
    """mypy finds one of neither, in `Master.on_message`."""
    assert members(wiring.LoopReport) | members(wiring.MasterReport) == members(ChildEvent)
    assert members(wiring.LoopReport).isdisjoint(members(wiring.MasterReport))


def test_what_a_role_sends_and_takes_is_there_once() -> None:
    assert set(LINKS) == set(Role) - {Role.EXEC}
    assert LINKS[Role.POD_WORKER] is catalogue.POD_WORKER
    for link in LINKS.values():
        assert members(link.reports) <= members(ChildReport)
        assert "Ready" in members(link.reports)
        assert "Shutdown" in members(link.commands)
    assert members(ChildReport) - members(ChildEvent) == {"Ready"}


def test_every_message_travels_on_some_link() -> None:
    links = [link for link in vars(catalogue).values() if isinstance(link, LinkTypes)]
    on_links = set[str]().union(*(members(link.commands) | members(link.reports) for link in links))
    leaves = {each.__name__ for each in descendants(Message) if not each.__subclasses__()}
    parts = {"SyncResult", "Observation"}  # they travel within others
    packed = {"PackedEventChanged"}  # arrives as an EventChanged
    assert leaves - parts - packed == on_links
    assert {Ready.__name__, Shutdown.__name__} <= on_links


def descendants(of: type) -> set[type]:
    direct: set[type] = set(of.__subclasses__())
    return direct.union(*(descendants(each) for each in direct))
