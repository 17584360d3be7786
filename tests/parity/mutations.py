"""Faults that the tests of parity rows have to notice: a row's name for a test says little, its red when the behaviour
breaks says that it is shown.

`test_mutations` carries each out on a copy of the tree (`make test-slow`).
"""

from __future__ import annotations

from typing import Final

import msgspec


class Mutation(msgspec.Struct, frozen=True):
    """One fault: ``new`` in place of ``old``, which stands once in the file, turns the row's test red."""

    row: str
    file: str
    old: str
    new: str
    test: str
    """One of those that the row names."""


_UNIT: Final = "tests/unit"

MUTATIONS: Final = (
    Mutation(
        "CFG-08",
        "supervisor/sources/objects/merge.py",
        "if key not in LOCAL_ANNOTATIONS}\n    return metadata.labels",
        "if key}\n    return metadata.labels",
        f"{_UNIT}/supervisor/sources/objects/test_merge.py::test_what_counts_as_a_difference",
    ),
    Mutation(
        "LOOP-02",
        "ipc/link/eventloop/backoff.py",
        "self.initial_s * 2.0 ** min(",
        "self.initial_s * 1.5 ** min(",
        f"{_UNIT}/ipc/link/eventloop/test_backoff.py::test_pauses_double_up_to_the_longest",
    ),
    Mutation(
        "ADM-05",
        "supervisor/admission/resource_fit.py",
        "if used + asked > limit:",
        "if used + asked > limit + 1:",
        f"{_UNIT}/supervisor/admission/test_predicates.py::test_pods_beyond_max_pods_are_rejected",
    ),
    Mutation(
        "KRT-02",
        "workers/compute/sandbox_change.py",
        "not is_sandbox_made_from(newest, pod)",
        "not newest.hash",
        f"{_UNIT}/workers/compute/test_pod_actions.py::test_a_changed_sandbox_is_replaced_with_everything_in_it",
    ),
    Mutation(
        "KRT-07",
        "workers/compute/regular_containers.py",
        "ContainerState.UNKNOWN: _judge_unknown,",
        "ContainerState.UNKNOWN: _judge_running,",
        f"{_UNIT}/workers/compute/test_pod_actions.py::test_an_unknown_container_is_killed_and_restarted",
    ),
    Mutation(
        "RES-01",
        "ipc/k8s/podresources/qos.py",
        " and requests.get(name, limits[name]) == limits[name] for",
        " for",
        f"{_UNIT}/ipc/k8s/podresources/test_qos.py::test_class",
    ),
    Mutation(
        "RES-03",
        "ipc/k8s/podresources/cgroup_config.py",
        "milli_cpu * SHARES_PER_CPU // MILLI",
        "milli_cpu // MILLI * SHARES_PER_CPU",
        f"{_UNIT}/workers/specgen/test_container_resources.py::test_shares",
    ),
    Mutation(
        "RES-04",
        "ipc/k8s/podresources/cgroup_config.py",
        "max(milli_cpu * period_us // MILLI, MIN_QUOTA_US)",
        "milli_cpu * period_us // MILLI",
        f"{_UNIT}/workers/specgen/test_container_resources.py::test_quota",
    ),
    Mutation(
        "DNS-05",
        "workers/network/dns.py",
        "resolver.servers[:MAX_NAMESERVERS]",
        "resolver.servers",
        f"{_UNIT}/workers/network/test_dns.py::test_limits",
    ),
    Mutation(
        "PRB-08",
        "workers/prober/state.py",
        "if run < threshold or result is state.result:",
        "if result is state.result:",
        f"{_UNIT}/workers/prober/test_state.py::test_only_so_many_equal_answers_in_a_row_say_something",
    ),
    Mutation(
        "IMG-01",
        "ipc/k8s/api/defaults.py",
        'return "Always" if name is not None and name.tag == DEFAULT_TAG else "IfNotPresent"',
        'return "Always" if name is None or name.tag == DEFAULT_TAG else "IfNotPresent"',
        f"{_UNIT}/ipc/k8s/api/test_image.py::test_pull_policy",
    ),
    Mutation(
        "IMG-06",
        "workers/images/pull_backoff.py",
        "next_s(_entry(known) if known else None, now_wall",
        "next_s(None, now_wall",
        f"{_UNIT}/workers/images/test_manager.py::test_a_failed_pull_backs_off_doubling_up_to_the_maximum",
    ),
    Mutation(
        "ENV-09",
        "workers/env/expansion.py",
        'value = "$" if name is None',
        'value = "$$" if name is None',
        f"{_UNIT}/workers/env/test_expansion.py::test_expand",
    ),
    Mutation(
        "SEC-03",
        "workers/specgen/container_user.py",
        "if context.run_as_user == 0:",
        "if context.run_as_user < 0:",
        f"{_UNIT}/workers/specgen/test_container_user.py::test_root_is_refused_in_the_kubelets_words",
    ),
    Mutation(
        "PORT-04",
        "workers/specgen/sandbox_namespaces.py",
        "by_key.setdefault(key, mapping)",
        "by_key[key] = mapping",
        f"{_UNIT}/workers/specgen/test_spec.py::test_of_two_equal_ports_the_first_counts",
    ),
    Mutation(
        "CGC-02",
        "ipc/k8s/kubecontainer/container_gc.py",
        "for container in dead[maximum:] if",
        "for container in dead[maximum + 1 :] if",
        f"{_UNIT}/ipc/k8s/kubecontainer/test_container_gc.py::test_each_container_keeps_its_newest_dead",
    ),
    Mutation(
        "CGC-03",
        "ipc/k8s/kubecontainer/container_gc.py",
        "if c.id not in spared), key=_age_order)",
        "if c.id not in spared), key=_age_order, reverse=True)",
        f"{_UNIT}/ipc/k8s/kubecontainer/test_container_gc.py::test_beyond_the_nodes_maximum_the_oldest_go_first",
    ),
    Mutation(
        "CGC-08",
        "workers/logs/layout.py",
        "if attempt in too_old and attempt not in there:",
        "if attempt in too_old and attempt in there:",
        f"{_UNIT}/workers/logs/test_layout.py::test_the_newest_two_attempts_keep_their_files",
    ),
    Mutation(
        "ADL-02",
        "supervisor/status/active_deadline.py",
        "return active_until - parse_rfc3339(start_time) >= deadline_s",
        "return active_until - parse_rfc3339(start_time) > 2 * deadline_s",
        f"{_UNIT}/supervisor/status/test_active_deadline.py::test_it_counts_from_the_start_time",
    ),
    Mutation(
        "EVI-12",
        "workers/eviction/limits.py",
        "elif used > limit.value:",
        "elif used > 2 * limit.value:",
        f"{_UNIT}/workers/eviction/test_limits.py::test_the_first_limit_that_is_exceeded_is_told",
    ),
    Mutation(
        "EVI-15",
        "supervisor/eviction/victim.py",
        "if not is_critical(pod)), None)",
        "if True), None)",
        f"{_UNIT}/supervisor/node/test_node_pressure.py::test_only_critical_pods",
    ),
    Mutation(
        "EVI-07",
        "supervisor/eviction/rounds.py",
        "if now - at < period_s",
        "if now - at < 0.0 * period_s",
        f"{_UNIT}/supervisor/node/test_node_pressure.py::test_a_condition_stays_for_the_transition_period_and_the_one_that_comes_is_dated",
    ),
    Mutation(
        "ADM-08",
        "supervisor/desired/pod_admission.py",
        "if not is_running and (problem := pressure_problem(pod, self._node.view.pressures)):",
        "if not is_running and (problem := pressure_problem(pod, ())):",
        f"{_UNIT}/supervisor/node/test_node_pressure.py::test_who_may_begin_under_pressure",
    ),
    Mutation(
        "EVI-01",
        "supervisor/node/node_pressure.py",
        "elif stage is None and due and self._is_all_known() and not self._waits_for_others(due[0], now):",
        "elif due and self._is_all_known():",
        f"{_UNIT}/supervisor/node/test_node_pressure.py::test_one_at_a_time",
    ),
    Mutation(
        "PW-17",
        "supervisor/podcontrol/pod_kills.py",
        "WAIT_FACTOR: Final = 1.5",
        "WAIT_FACTOR: Final = 4.0",
        f"{_UNIT}/supervisor/podcontrol/test_pod_kills.py::test_nobody_waits_longer_than_is_reasonable",
    ),
    Mutation(
        "TERM-02",
        "ipc/k8s/api/defaults.py",
        "DEFAULT_TERMINATION_GRACE_PERIOD_SECONDS: Final = 30",
        "DEFAULT_TERMINATION_GRACE_PERIOD_SECONDS: Final = 10",
        f"{_UNIT}/ipc/k8s/api/test_defaults.py::test_minimal_pod",
    ),
    Mutation(
        "NS-07",
        "workers/network/hostnames.py",
        "if len(names.fqdn) > MAX_FQDN_CHARS:",
        "if len(names.fqdn) > 2 * MAX_FQDN_CHARS:",
        f"{_UNIT}/workers/network/test_hostnames.py::test_a_name_that_the_kernel_cannot_hold",
    ),
)
