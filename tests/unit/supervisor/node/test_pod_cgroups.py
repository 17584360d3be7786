"""Plans of the slices above those of pods: when they go out, and what they say."""

from __future__ import annotations

from collections.abc import Callable

from ipc.k8s.podresources.cgroup_config import CgroupConfig
from ipc.k8s.podresources.node_resources import NodeResources, PodCgroups
from supervisor.node.pod_cgroups import PERIOD_S
from supervisor.processes.worker_pool import NODE_SLOT
from tests.support.dialogue import Talk, absent, pod, running

NODE = NodeResources(pod_cgroups=PodCgroups(), pods_limit={"cpu": "2", "memory": "1Gi"})


def test_a_plan_goes_out_when_pods_change_and_once_a_minute() -> None:
    talk = Talk(node=NODE)
    talk.up(NODE_SLOT)
    talk.tick(1.0)
    assert talk.plans == [], "nobody knows what is wanted"
    talk.start("x")
    talk.tick(1.0)
    assert [plan.uids for plan in talk.plans] == [("x",)]
    assert talk.plans[0].slices == {
        "rootlet.slice": CgroupConfig(memory=1 << 30, cpu_shares=2048),
        "rootlet-burstable.slice": CgroupConfig(cpu_shares=2),
        "rootlet-besteffort.slice": CgroupConfig(cpu_shares=2),
    }
    talk.tick(1.0)
    assert len(talk.plans) == 1
    talk.add(pod("y"))
    talk.tick(1.0)
    assert sorted(talk.plans[1].uids) == ["x", "y"]
    assert talk.plans[1].planned_at == talk.mono
    talk.tick(PERIOD_S)
    assert len(talk.plans) == 3


def test_a_plan_follows_each_change_of_which_pods_may_run_and_nothing_else() -> None:
    talk = Talk(node=NODE)
    talk.start("x", "y")
    talk.tick(1.0)
    changes: dict[str, tuple[Callable[[], object], bool]] = {
        "a look": (lambda: talk.see(running("x")), False),
        "an edit": (lambda: talk.update(pod("x", image="v2")), True),
        "a sync's end": (lambda: talk.done("x"), False),
        "a deletion": (lambda: talk.remove("y"), True),
        "its effect": (lambda: talk.done("y", changed=True), False),
        "its end": (lambda: talk.see(absent("y")), False),
        "one more": (lambda: talk.add("z"), True),
    }
    for what, (act, is_news) in changes.items():
        before = len(talk.plans)
        act()
        talk.tick(0.5)
        assert len(talk.plans) == before + is_news, what


def test_a_new_node_worker_is_told_at_once() -> None:
    talk = Talk(node=NODE)
    talk.start("x")
    talk.tick(1.0)
    talk.down(NODE_SLOT)
    talk.tick(1.0)
    assert len(talk.plans) == 1
    talk.up(NODE_SLOT, 2)
    talk.tick(1.0)
    assert len(talk.plans) == 2


def test_a_node_without_slices_plans_none() -> None:
    talk = Talk()
    talk.start("x")
    talk.tick(2 * PERIOD_S)
    assert talk.plans == []
