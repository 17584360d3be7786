"""Adapters of the groups that the workers answer for: (expected, got) of one case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import json, structs, to_builtins

from ipc.k8s.api.pod_containers import ContainerKind, every_container
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import HostAlias, Pod, PodSpec
from ipc.k8s.api.v1.security import PodSecurityContext, Sysctl
from ipc.k8s.api.v1.status import ContainerStatus
from ipc.k8s.kubecontainer.hashing import container_hash
from ipc.k8s.kubecontainer.initialized import (
    has_any_active_regular_container_started,
    has_any_regular_container_started,
)
from ipc.k8s.kubecontainer.restart_policy import (
    all_containers_could_restart,
    container_should_restart,
    find_matching_restart_rule,
    is_container_restartable,
    should_all_containers_restart,
    should_container_be_restarted,
)
from ipc.k8s.podresources.allocation import ResourceAmounts
from ipc.k8s.podresources.cgroup_config import milli_cpu_to_quota, milli_cpu_to_shares
from ipc.link.eventloop.backoff import Backoff, BackoffEntry
from supervisor.config.sysctl_allowlist import forbidden_sysctl, pattern_problem
from tests.fakes.clock import RESOLUTION_S, simulate
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import (
    Json,
    container_status,
    convert,
    pod,
    pod_spec,
    pod_status,
    probe_results_by_id,
    wall,
)
from workers.compute.crash_loop_backoff import (
    CRASH_LOOP_RESET_S,
    crash_loop_limits,
    do_backoff,
)
from workers.compute.grace_period import KillReason, signal_window_s, termination_grace_s
from workers.compute.init_containers import is_init_container_failed
from workers.compute.pod_actions import compute_pod_actions
from workers.compute.pruning import prune_init_containers
from workers.compute.types import PodActions
from workers.kubecontainer.event_messages import crash_loop_message
from workers.kuberuntime.termination_order import TerminationOrder, termination_order
from workers.logs.layout import restart_count_by_log_dir
from workers.network.hostnames import HostnameError, PodNames, nodename_for_kernel, pod_names, truncate_hostname
from workers.network.hosts_file import managed_hosts_file, node_hosts_file
from workers.specgen.oom_score import oom_score_adj
from workers.specgen.sandbox_namespaces import make_port_mappings

_ALLOWED_SYSCTLS: Final = ("kernel.msg*", "kernel.sem", "net.b.*")
"""Sysctls that every case of that group allows."""
_GATE_OFF: Final = ("with FG disabled", "pod resize disabled")
_CONTROLLERS: Final = frozenset({"cpu", "memory"})


def _compute_pod_actions(case: Json) -> Result:
    if case["name"].endswith(_GATE_OFF):
        raise Later("a gate of in-place resize that is on here")
    if case["name"] == "Update pod-level limits does not mutate container resources":
        raise Later("a resize that validation forbids: it changes the QoS class")
    of = pod(case["pod"])
    got = compute_pod_actions(
        of,
        pod_status(case["status"], of, case.get("actuated_container_resources"), case.get("actuated_pod_resources")),
        wall(case.get("now")),
        crash_loop_limits(300),
        probe_results={id: probe_results_by_id(results) for id, results in case["probes"].items()},
        restarting_all=case["restart_all_containers"],
        controllers=_CONTROLLERS,
    )
    return _expected_actions(case["expected"]), _got_actions(got)


def _expected_actions(expected: Json) -> dict[str, Any]:
    kills = sorted((k["id"], k["name"], k["reason"], k["message"]) for k in expected["containers_to_kill_detail"])
    return {
        "kill_pod": expected["kill_pod"],
        "create_sandbox": expected["create_sandbox"],
        "sandbox_id": expected["sandbox_id"] or "",
        "attempt": expected["attempt"],
        "ephemeral_to_start": expected["ephemeral_to_start"],
        "init_containers_to_start": expected["init_containers_to_start"],
        "containers_to_start": expected["containers_to_start"],
        "containers_to_kill": kills,
        "containers_to_reset": [(r["id"], r["name"], r["kill"]) for r in expected["containers_to_reset"]],
        "containers_to_update": {
            name: [
                (u["id"], u["name"], _amounts(u["current"], "_milli"), _amounts(u["desired"], "_milli"))
                for u in updates
            ]
            for name, updates in (expected["containers_to_update"] or {}).items()
        },
        "update_pod_resources": bool(expected["update_pod_resources"]),
        "update_pod_level_resources": bool(expected["update_pod_level_resources"]),
    }


def _got_actions(got: PodActions) -> dict[str, Any]:
    """Upstream's lists of containers to start hold those that back off too; in the cases none does."""
    kills = sorted((k.id, k.name, k.reason.value, k.message) for k in got.containers_to_kill)
    return {
        "kill_pod": got.kill_pod,
        "create_sandbox": got.create_sandbox,
        "sandbox_id": got.sandbox_id,
        "attempt": got.attempt,
        "ephemeral_to_start": [start.name for start in got.ephemeral_containers_to_start],
        "init_containers_to_start": [start.name for start in got.init_containers_to_start],
        "containers_to_start": [start.name for start in got.containers_to_start],
        "containers_to_kill": kills,
        "containers_to_reset": [
            (r.container.id, r.container.name, r.kill is not None) for r in got.containers_to_reset
        ],
        "containers_to_update": {
            name: [(u.id, u.name, u.current, u.desired) for u in updates]
            for name in sorted(_CONTROLLERS)
            if (updates := got.resize.of(name))
        },
        "update_pod_resources": got.resize.restarted,
        "update_pod_level_resources": got.resize.pod_level,
    }


def _expected_update(update: Json) -> tuple[str, str, ResourceAmounts, ResourceAmounts]:
    return update["id"], update["name"], _amounts(update["current"], "_milli"), _amounts(update["desired"], "_milli")


def _amounts(data: Json, cpu_unit: str = "") -> ResourceAmounts:
    return ResourceAmounts(
        cpu_request=data[f"cpu_request{cpu_unit}"],
        cpu_limit=data[f"cpu_limit{cpu_unit}"],
        memory_request=data["memory_request"],
        memory_limit=data["memory_limit"],
    )


def _should_all_containers_restart(case: Json) -> Result:
    of = pod(case["pod"])
    conditions = (case["api_status"] or {}).get("conditions") or ()
    restarting = {"type": "AllContainersRestarting", "status": "True"}
    is_restarting = any(restarting.items() <= condition.items() for condition in conditions)
    return case["expected"], should_all_containers_restart(of.spec, pod_status(case["status"], of), is_restarting)


def _all_containers_could_restart(case: Json) -> Result:
    return case["expected"], all_containers_could_restart(pod_spec(case["spec"]))


def _is_container_restartable(case: Json) -> Result:
    container = convert(case["container"], Container)
    return case["expected"], is_container_restartable(pod_spec(case["spec"]), container)


def _find_matching_restart_rule(case: Json) -> Result:
    found = find_matching_restart_rule(convert(case["container"], Container), case["exit_code"])
    got = json.decode(json.encode(found)) if found is not None else {}
    return (case["expected_found"], case["expected_rule"]), (found is not None, got)


def _has_any_regular_container_started(case: Json) -> Result:
    statuses = [convert(status, ContainerStatus) for status in case["statuses"]]
    return case["expected"], has_any_regular_container_started(pod_spec(case["spec"]), statuses)


def _has_any_active_regular_container_started(case: Json) -> Result:
    """Active are those in the newest sandbox, where `pod_status` puts them all."""
    of = Pod(metadata=ObjectMeta(), spec=pod_spec(case["spec"]))
    status = pod_status({**case["status"], "containers": case["status"].get("active_containers")}, of)
    return case["expected"], has_any_active_regular_container_started(of.spec, status)


def _is_init_container_failed(case: Json) -> Result:
    return case["expected"], is_init_container_failed(container_status(case["status"]))


def _prune_init_containers(case: Json) -> Result:
    of = pod(case["pod"])
    status = pod_status(case["status"], of)
    pruned = prune_init_containers(of.spec, status)
    return case["expected_remaining_container_ids"], [c.id for c in status.containers if c not in pruned]


def _should_container_be_restarted(case: Json) -> Result:
    of = pod(case["pod"])
    container = _named(of, case["container"])
    newest = pod_status(case["status"], of).newest(container.name)
    deleting = of.metadata.deletion_timestamp is not None
    return case["expected"], should_container_be_restarted(container, of.spec, newest, deleting=deleting)


def _container_should_restart(case: Json) -> Result:
    container = convert(case["container"], Container)
    return case["expected"], container_should_restart(container, pod_spec(case["spec"]), case["exit_code"])


def _container_termination_grace(case: Json) -> Result:
    of = pod(case["pod"])
    grace_s = termination_grace_s(of, _named(of, case["container"]), KillReason(case["reason"]))
    return case["expected"], signal_window_s(grace_s, 0)


def _termination_ordering(case: Json) -> Result:
    """Each container of the case is asked to stop when its turn comes, and is down a given time after that."""
    sidecars = tuple(Container(name=name, restart_policy="Always") for name in case["sidecars"])
    regular = tuple(Container(name=name) for name in case["containers"])
    of = Pod(metadata=ObjectMeta(name="pod"), spec=PodSpec(init_containers=sidecars, containers=regular))
    names = [*case["sidecars"], *case["containers"]]

    async def waited_s(order: TerminationOrder, name: str) -> float:
        began = asyncio.get_running_loop().time()
        await order.wait_turn(name, case["grace_s"][name])
        waited_s = asyncio.get_running_loop().time() - began
        await asyncio.sleep(case["exit_after_turn_s"][name])
        order.terminated(name)
        return waited_s

    async def stop_all() -> list[float]:
        order = termination_order(of, names)
        return await asyncio.gather(*(waited_s(order, name) for name in names))

    # Upstream's function returns seconds, and its callers cut them to whole ones.
    got = {name: int(waited + RESOLUTION_S) for name, waited in zip(names, simulate(stop_all), strict=True)}
    return case["expected_wait_s"], got


def _do_backoff(case: Json) -> Result:
    of, now = pod(case["pod"]), wall(case["now"])
    container, before, limits = (
        _named(of, case["container"]),
        case["backoff"]["entry_before_s"],
        _limits(case["backoff"]),
    )
    # The entry was written at `now`; here an entry is the newest container's label.
    seen = pod_status(case["status"], of)
    entry = structs.replace(seen.containers[0], backoff_s=before, created_at=now)
    status = structs.replace(seen, containers=(entry, *seen.containers[1:]))
    decision = do_backoff(container.name, container_hash(container, ContainerKind.REGULAR), status, now, limits)
    waits = decision.retry_at > 0
    got = {
        "in_backoff": waits,
        "entry_after_s": decision.backoff_s,
        "error": "CrashLoopBackOff" if waits else None,
        "message_go": crash_loop_message(of, container.name, decision.backoff_s) if waits else None,
        "backoff_expires_at": decision.retry_at,
    }
    expected = {**case["expected"], "backoff_expires_at": wall(case["expected"].get("backoff_expires_at"))}
    return expected, got


def _limits(data: Json) -> Backoff:
    expires = data.get("expires_after", {"s": CRASH_LOOP_RESET_S})["s"]
    return Backoff(initial_s=data["initial_s"], max_s=data["max_s"], expires_after_s=expires)


def _crashloop_backoff_config(case: Json) -> Result:
    if case["feature_gates"]["ReduceDefaultCrashLoopBackOffDecay"]:
        raise Later("the alpha gate ReduceDefaultCrashLoopBackOffDecay")
    limits = crash_loop_limits(case["configured_max_s"])
    return (case["expected_initial_s"], case["expected_max_s"]), (limits.initial_s, limits.max_s)


def _flowcontrol_backoff(case: Json) -> Result:
    store = _BackoffStore(_limits(case))
    asked = [(op, store.do(op)) for op in case["ops"]]
    wrong = [(op, answer) for op, answer in asked if not _as_expected(op, answer)]
    return [], wrong


def _as_expected(op: Json, answer: object) -> bool:
    if "expect_min_s" in op:
        return isinstance(answer, (int, float)) and answer >= op["expect_min_s"]
    return bool(answer == op.get("expect", op.get("expect_s")))


class _BackoffStore:
    """One key of upstream's Backoff object and its clock, over the pure functions."""

    def __init__(self, limits: Backoff) -> None:
        self._limits = limits
        self._now = 0.0
        self._entry: BackoffEntry | None = None

    def do(self, op: Json) -> object:
        """Carry out one operation; the answer, None when it has none."""
        return {
            "step": lambda: self._set_time(self._now + op["s"]),
            "set_time": lambda: self._set_time(op["s"]),
            "next": self._next,
            "get": lambda: self._entry.backoff_s if self._entry else 0,
            "gc": self._gc,
            "has_entry": lambda: self._entry is not None,
            "reset": self._reset,
            "in_backoff_since_update": self._in_backoff_since_update,
        }[op["op"]]()

    def _set_time(self, now: float) -> None:
        self._now = now

    def _next(self) -> None:
        self._entry = BackoffEntry(backoff_s=self._limits.next_s(self._entry, self._now), updated_at=self._now)

    def _reset(self) -> None:
        self._entry = None

    def _gc(self) -> None:
        if self._entry is not None and self._limits.has_expired(self._entry, self._now):
            self._entry = None

    def _in_backoff_since_update(self) -> bool:
        entry = self._entry
        if entry is None or self._limits.has_expired(entry, self._now):
            return False
        return self._limits.must_wait(entry, entry.updated_at, self._now)


def _oom_score_adj(case: Json) -> Result:
    of = pod(case["pod"])
    return case["actual_in_go"], oom_score_adj(of, _named(of, case["container"]), case["memory_capacity_bytes"])


def _make_port_mappings(case: Json) -> Result:
    mappings = make_port_mappings(convert(case["container"], Container))
    return case["expected"], [to_builtins(mapping) for mapping in mappings]


def _truncate_hostname(case: Json) -> Result:
    return case["expected"], truncate_hostname(case["input"])


def _pod_hostname_and_domain(case: Json) -> Result:
    try:
        got: object = pod_names(pod(case["pod"]), case["cluster_domain"])
    except HostnameError as error:
        got = str(error)
    names = PodNames(case.get("expected_hostname", ""), case.get("expected_domain", ""))
    return case.get("expected_error", names), got


def _managed_hosts_file(case: Json) -> Result:
    names = PodNames(case["hostname"], case["domain"])
    return case["expected"], managed_hosts_file(case["host_ips"], names, _aliases(case))


def _node_hosts_file(case: Json) -> Result:
    return case["expected"], node_hosts_file(case["raw"], _aliases(case))


def _aliases(case: Json) -> tuple[HostAlias, ...]:
    return tuple(convert(alias, HostAlias) for alias in case["host_aliases"])


def _restart_count_by_log_dir(case: Json) -> Result:
    return case["expected"], restart_count_by_log_dir(case["files"])


def _nodename_for_kernel(case: Json) -> Result:
    names = PodNames(case["hostname"], case["host_domain"])
    try:
        got = nodename_for_kernel(names, as_fqdn=bool(case["set_hostname_as_fqdn"]))
    except HostnameError:
        return (case["expect_error"], ""), (True, "")
    return (case["expect_error"], case["expected_hostname"]), (False, got)


def _cpu_quota(case: Json) -> Result:
    """Nothing asks for a quota of nothing."""
    milli_cpu = case["milli_cpu"]
    return case["expected"], milli_cpu_to_quota(milli_cpu, case["period_us"]) if milli_cpu else 0


def _cpu_shares(case: Json) -> Result:
    return case["expected"], milli_cpu_to_shares(case["milli_cpu"])


def _sysctl_allowlist(case: Json) -> Result:
    spec = PodSpec(
        containers=(),
        host_network=case["host_net"],
        host_ipc=case["host_ipc"],
        security_context=PodSecurityContext(sysctls=(Sysctl(name=case["sysctl"], value="1"),)),
    )
    return case["expected"], forbidden_sysctl(Pod(metadata=ObjectMeta(), spec=spec), _ALLOWED_SYSCTLS) is None


def _sysctl_pattern_valid(case: Json) -> Result:
    return case["expect_err"], any(map(pattern_problem, case["sysctls"]))


def _named(of: Pod, name: str) -> Container:
    return next(found.container for found in every_container(of.spec) if found.container.name == name)


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "compute_pod_actions": _compute_pod_actions,
    "should_all_containers_restart": _should_all_containers_restart,
    "all_containers_could_restart": _all_containers_could_restart,
    "is_container_restartable": _is_container_restartable,
    "find_matching_restart_rule": _find_matching_restart_rule,
    "has_any_regular_container_started": _has_any_regular_container_started,
    "has_any_active_regular_container_started": _has_any_active_regular_container_started,
    "is_init_container_failed": _is_init_container_failed,
    "prune_init_containers": _prune_init_containers,
    "should_container_be_restarted": _should_container_be_restarted,
    "container_should_restart": _container_should_restart,
    "container_termination_grace": _container_termination_grace,
    "termination_ordering": _termination_ordering,
    "do_backoff": _do_backoff,
    "crashloop_backoff_config": _crashloop_backoff_config,
    "flowcontrol_backoff": _flowcontrol_backoff,
    "restart_count_by_log_dir": _restart_count_by_log_dir,
    "oom_score_adj": _oom_score_adj,
    "make_port_mappings": _make_port_mappings,
    "truncate_hostname": _truncate_hostname,
    "pod_hostname_and_domain": _pod_hostname_and_domain,
    "managed_hosts_file": _managed_hosts_file,
    "node_hosts_file": _node_hosts_file,
    "nodename_for_kernel": _nodename_for_kernel,
    "cpu_quota": _cpu_quota,
    "cpu_shares": _cpu_shares,
    "sysctl_allowlist": _sysctl_allowlist,
    "sysctl_pattern_valid": _sysctl_pattern_valid,
}
"""Group -> adapter."""
