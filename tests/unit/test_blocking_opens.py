"""Reads the source: nothing opens a path in a way that waits for whoever has put a FIFO there.

A container, an image, or another program of the user may give a name to something else than the file that is expected.
So a path is opened by `ipc.host.regular_files`, or by flags with which open(2) waits for nobody. Files that the kernel
makes up are read as they are, in the functions that stand here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from tests.house import ROOT, trees_with

COMMANDS: Final = ("supervisor/cli/", "supervisor/load_test/", "supervisor/client/")
"""Commands of people, in the foreground: they may wait for a file that was named."""
HARMLESS: Final = frozenset({"O_NONBLOCK", "O_PATH", "O_DIRECTORY", "O_EXCL"})
"""Flags with which an open does not wait: O_EXCL makes the file itself."""
METHODS: Final = frozenset({"read_text", "read_bytes", "write_text", "write_bytes"})
MODES: Final = frozenset("rwaxbt+")
KERNELS: Final[Mapping[str, frozenset[str]]] = {
    "ipc/host/file_systems.py": frozenset({"file_system_type", "mount_id"}),
    "ipc/host/network_addresses.py": frozenset({"_own_inet6", "_text"}),
    "ipc/host/log/journal.py": frozenset({"_send_in_memory"}),
    "ipc/host/process/profiles.py": frozenset({"command_line"}),
    "ipc/link/shm/mutation_slots.py": frozenset({"member"}),
    "supervisor/admission/cgroups.py": frozenset({"delegated_controllers", "own_cgroup"}),
    "supervisor/admission/node_resources.py": frozenset({"_swap_bytes", "_unprivileged_port_start", "read_machine"}),
    "supervisor/config/containers_conf.py": frozenset({"manager_of"}),
    "supervisor/doctor/host.py": frozenset({"_number"}),
    "supervisor/doctor/pod_network.py": frozenset({"_routes"}),
    "supervisor/processes/scheduling.py": frozenset({"_read"}),
    "supervisor/processes/zygote.py": frozenset({"_exec"}),
    "supervisor/state/instance_lock.py": frozenset({"_is_alive"}),
    "supervisor/state/shutdown_state.py": frozenset({"boot_id"}),
    "workers/api_server/audit.py": frozenset({"_program"}),
    "workers/api_server/kubelet/node_logs.py": frozenset({"_opened"}),
    "workers/cm/user_slices.py": frozenset({"is_populated"}),
    "workers/dialer/namespaces.py": frozenset({"open_network"}),
    "workers/eviction/node_signals.py": frozenset({"_read"}),
    "workers/exec/direct.py": frozenset({"_environment", "_target"}),
    "workers/kuberuntime/bandwidth.py": frozenset({"_shape"}),
    "workers/proc/cgroups.py": frozenset({"_read", "write_config"}),
    "workers/proc/process_limit.py": frozenset({"own_limit"}),
    "workers/proc/procfs.py": frozenset({"boot_time", "read_once", "read_whole"}),
    "workers/stats/flat_files.py": frozenset({"_read"}),
    "workers/userns/fork_server.py": frozenset({"_let_go_of_standard_streams"}),
    "workers/userns/steps/unlinked_files.py": frozenset({"_of_cgroup", "_read", "_text"}),
    "workers/userns/steps/removal.py": frozenset({"_mounts_at_or_below"}),
}
"""Functions that read /proc, /sys, a cgroup or /dev alone, or a descriptor that is theirs, by file."""


def test_no_open_waits_for_somebody_else() -> None:
    found = {
        (name, function)
        for path, tree in trees_with("open", *METHODS)
        if not (name := str(path.relative_to(ROOT))).startswith(COMMANDS)
        for function in blocking_opens(tree)
    }
    stated = {(name, function) for name, functions in KERNELS.items() for function in functions}
    assert found == stated


def blocking_opens(tree: ast.Module) -> Iterator[str]:
    """Names of the functions that open a path so that it may take for ever; empty for the module itself."""
    constants = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for function, call in _calls(tree, ""):
        flags = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
        if _is_open(call.func) and not any(HARMLESS & _names(given, constants) for given in flags):
            yield function


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(child, ast.Call) and (not isinstance(child.func, ast.Attribute) or _may_be_of_a_path(child)):
            yield inside, child
        yield from _calls(child, inside)


def _is_open(function: ast.expr) -> bool:
    return (isinstance(function, ast.Name) and function.id == "open") or isinstance(function, ast.Attribute)


def _may_be_of_a_path(call: ast.Call) -> bool:
    """``os.open``, and methods of a path; ``open`` of anything else has no mode."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr in METHODS:
        return True
    if call.func.attr != "open":
        return False
    if isinstance(call.func.value, ast.Name) and call.func.value.id in ("os", "io"):
        return True
    return any(isinstance(mode, ast.Constant) and _is_mode(mode.value) for mode in _given_modes(call))


def _given_modes(call: ast.Call) -> list[ast.expr]:
    return [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]


def _is_mode(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 3 and MODES.issuperset(value)


def _names(node: ast.AST, constants: Mapping[str, ast.expr]) -> set[str]:
    """Names of attributes in an expression, and what was assigned to the names in it."""
    found = {child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)}
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and child.id in constants:
            found |= _names(constants[child.id], {name: v for name, v in constants.items() if name != child.id})
    return found


@pytest.mark.parametrize(
    ("source", "waits"),
    [
        ("def f(path):\n    with open(path) as file: pass", ["f"]),
        ("def f(path):\n    return path.open('rb')", ["f"]),
        ("def f(path):\n    return path.read_text()", ["f"]),
        ("def f(path):\n    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)", ["f"]),
        ("FLAGS = os.O_RDONLY\ndef f(path):\n    return os.open(path, FLAGS)", ["f"]),
        ("FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK\ndef f(path):\n    return os.open(path, FLAGS)", []),
        ("def f(path):\n    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)", []),
        ("async def f(listener):\n    await listener.open(context)", []),
        ("def f(path):\n    return read_regular_file(path, 100)", []),
    ],
)
def test_what_waits(source: str, waits: list[str]) -> None:
    assert list(blocking_opens(ast.parse(source))) == waits
