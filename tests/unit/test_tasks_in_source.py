"""Reads the source: a background task begins in ``ipc/link/eventloop/tasks.py``, or in a task group that the same
function waits for.

asyncio says nothing of a task that dies while nobody looks at it. So nobody begins one without an owner.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from tests.house import ROOT, trees_with

TASK_FILES: Final = frozenset({"ipc/link/eventloop/tasks.py", "workers/sync/attribution.py"})
"""The owner of tasks, and the factory that a loop makes each task by."""
BEGINNINGS: Final = frozenset(
    {"create_task", "ensure_future", "run_coroutine_threadsafe", "Task", "eager_task_factory"}
)
TASK_GROUP: Final = "TaskGroup"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_background_tasks_have_an_owner() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path, tree in trees_with(*BEGINNINGS)
        if str(path.relative_to(ROOT)) not in TASK_FILES
        for line in loose_tasks(tree)
    }
    assert found == set()


def loose_tasks(tree: ast.Module) -> list[int]:
    """Lines of calls that begin a task outside of a task group of the function that they stand in."""
    inside = {call for function in _functions(tree) for call in _in_groups(function)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last_name(node.func) in BEGINNINGS]
    return sorted(call.lineno for call in calls if call not in inside)


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _in_groups(function: Function) -> Iterator[ast.Call]:
    """Calls on task groups: those that it opens, and those that it is handed."""
    groups = {
        item.optional_vars.id
        for node in ast.walk(function)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if isinstance(item.context_expr, ast.Call) and _last_name(item.context_expr.func) == TASK_GROUP
        if isinstance(item.optional_vars, ast.Name)
    }
    handed = {arg.arg for arg in function.args.args if arg.annotation and _last_name(arg.annotation) == TASK_GROUP}
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "create_task"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in groups | handed
        ):
            yield node


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
    return ""


@pytest.mark.parametrize(
    "source",
    [
        "asyncio.create_task(f())",
        "async def g():\n    t = asyncio.get_running_loop().create_task(f())",
        "async def g():\n    asyncio.ensure_future(f())",
        "from asyncio import create_task\ncreate_task(f())",
        "async def g(group):\n    group.create_task(f())",
        "async def g():\n    async with asyncio.TaskGroup() as group:\n        loop.create_task(f())",
        "async def g():\n    asyncio.Task(f())",
    ],
)
def test_a_task_without_an_owner_is_seen(source: str) -> None:
    assert len(loose_tasks(ast.parse(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "async def g():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(f())",
        "async def g(group: asyncio.TaskGroup):\n    group.create_task(f())",
        "def g(self):\n    self._tasks.spawn(f(), name='f')",
        "async def g():\n    await asyncio.gather(f(), h())",
    ],
)
def test_a_task_with_an_owner_is_let_pass(source: str) -> None:
    assert loose_tasks(ast.parse(source)) == []
