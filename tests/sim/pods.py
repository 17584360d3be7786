"""Pods to simulate: put together at random from everything that a manifest can ask for here."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import (
    Container,
    ContainerPort,
    ContainerRestartRule,
    ContainerRestartRuleAction,
    ContainerRestartRuleOnExitCodes,
    ContainerRestartRuleOnExitCodesOperator,
    EphemeralContainer,
)
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.probe import ExecAction, Lifecycle, LifecycleHandler, SleepAction
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from tests.fakes.podman import Program
from tests.sim.objects import SimObjects
from tests.sim.probes import with_probes
from tests.sim.resizes import Sizes, never_policies

PRESENT: Final = "localhost/present:1"
PULLED: Final = ("registry.test/one:1", "registry.test/two:1")
ABSENT: Final = "registry.test/absent:1"

PROGRAMS: Final[Mapping[tuple[str, ...], Program]] = {
    ("serve",): Program(term_exit_code=0),
    ("slow-to-end",): Program(term_exit_code=None),
    ("job",): Program(runs_s=8.0, exit_code=0, term_exit_code=143),
    ("fail",): Program(runs_s=5.0, exit_code=1, term_exit_code=143),
    ("fail-late",): Program(runs_s=45.0, exit_code=2, term_exit_code=None),
    ("ask-for-all",): Program(runs_s=20.0, exit_code=42, term_exit_code=143),
    ("setup",): Program(runs_s=2.0, exit_code=0),
    ("setup-slowly",): Program(runs_s=15.0, exit_code=0),
    ("setup-in-vain",): Program(runs_s=2.0, exit_code=7),
    ("hook",): Program(runs_s=1.0),
    ("hook-fails",): Program(runs_s=1.0, exit_code=1),
    ("hook-hangs",): Program(runs_s=25.0),
    ("hook-ends-it",): Program(runs_s=2.0, ends_container=True),
}
MAIN: Final = (("serve",), ("serve",), ("serve",), ("slow-to-end",), ("job",), ("fail",), ("fail-late",))
INIT: Final = (("setup",), ("setup",), ("setup",), ("setup-slowly",), ("setup-in-vain",))
HOOKS: Final = (("hook",), ("hook",), ("hook-fails",), ("hook-hangs",), ("hook-ends-it",), ("no-such-command",))
IMAGES: Final = (PRESENT,) * 8 + PULLED + (ABSENT,)
OPERATORS: Final[tuple[ContainerRestartRuleOnExitCodesOperator, ...]] = ("In", "NotIn")
HOST_PORT: Final = 8080
UNPROBED: Final = 0.4
"""Part of the pods that have no probes."""


class PodMaker:
    """Random pods and random edits."""

    def __init__(
        self,
        rng: random.Random,
        probing: random.Random | None = None,
        objects: SimObjects | None = None,
        sizes: Sizes | None = None,
        claiming: Callable[[Pod], Pod] = lambda pod: pod,
    ) -> None:
        """``probing``: for probes; None when there are to be none. ``objects``: what pods may refer to. ``sizes``: of
        their resources. ``claiming`` gives a pod claims, or none."""
        self._rng = rng
        self._probing = probing
        self._objects = objects
        self._sizes = sizes
        self._claiming = claiming

    def make(self, uid: str) -> Pod:
        pod = self._claiming(self._without_sizes(uid))
        return never_policies(self._sizes.sized(pod)) if self._sizes else pod

    def _without_sizes(self, uid: str) -> Pod:
        pod = self._objects.refer(self._make(uid)) if self._objects else self._make(uid)
        if self._probing is None or self._probing.random() < UNPROBED:
            return pod
        return msgspec.structs.replace(pod, spec=self._with_probes(self._probing, pod.spec))

    def _with_probes(self, rng: random.Random, spec: PodSpec) -> PodSpec:
        """Regular containers and sidecars may have some."""
        inits = (with_probes(rng, init) if is_restartable_init(init) else init for init in spec.init_containers)
        return msgspec.structs.replace(
            spec, init_containers=tuple(inits), containers=tuple(with_probes(rng, c) for c in spec.containers)
        )

    def _make(self, uid: str) -> Pod:
        rng = self._rng
        pick = rng.choice
        names = ["one", "two"][: pick((1, 1, 2))]
        ports = (ContainerPort(container_port=80, host_port=HOST_PORT),) if self._chance(0.06) else ()
        containers = [self._container(name, pick(MAIN)) for name in names]
        containers[0] = msgspec.structs.replace(containers[0], ports=ports)
        spec = PodSpec(
            containers=tuple(containers),
            init_containers=tuple(self._init(n) for n in range(pick((0, 0, 0, 1, 2, 3)))),
            ephemeral_containers=(self._ephemeral(),) if self._chance(0.1) else (),
            restart_policy=pick(("Always", "Always", "Always", "OnFailure", "Never")),
            termination_grace_period_seconds=pick((1, 5, 10, 30)),
            active_deadline_seconds=pick((20, 90)) if self._chance(0.1) else None,
            hostname=pick(("", "", "a", "b")),
        )
        return Pod(metadata=ObjectMeta(name=f"pod-{uid[:8]}", namespace="default", uid=uid), spec=spec)

    def edit(self, pod: Pod) -> Pod:
        """Something of it is changed; perhaps nothing that matters."""
        fresh = self.make(pod.metadata.uid).spec
        part = self._rng.choice(
            ("containers", "containers", "init_containers", "ephemeral_containers", "hostname", "everything")
        )
        spec = fresh
        if part != "everything":
            spec = msgspec.structs.replace(pod.spec, **{part: getattr(fresh, part)})
        edited = never_policies(msgspec.structs.replace(pod, spec=spec))
        return self._sizes.edited(pod, edited) if self._sizes else edited

    def _container(self, name: str, command: tuple[str, ...]) -> Container:
        made = Container(
            name=name,
            image=self._rng.choice(IMAGES),
            args=command,
            image_pull_policy=self._rng.choice(("IfNotPresent", "IfNotPresent", "Always")),
            lifecycle=self._lifecycle(),
        )
        if not self._chance(0.1):
            return made
        return msgspec.structs.replace(made, **self._own_policy())

    def _own_policy(self) -> dict[str, object]:
        actions: tuple[ContainerRestartRuleAction, ...] = ("Restart", "RestartAllContainers")
        codes = ContainerRestartRuleOnExitCodes(operator=self._rng.choice(OPERATORS), values=(42, 1))
        rule = ContainerRestartRule(action=self._rng.choice(actions), exit_codes=codes)
        return {
            "args": ("ask-for-all",),
            "restart_policy": self._rng.choice(("Never", "OnFailure", "Always")),
            "restart_policy_rules": (rule,),
        }

    def _init(self, number: int) -> Container:
        if self._chance(0.35):
            return Container(
                name=f"side-{number}",
                image=PRESENT,
                args=self._rng.choice((("serve",), ("serve",), ("slow-to-end",), ("fail-late",))),
                restart_policy="Always",
                lifecycle=self._lifecycle(),
            )
        return Container(name=f"init-{number}", image=self._rng.choice(IMAGES), args=self._rng.choice(INIT))

    def _ephemeral(self) -> EphemeralContainer:
        return EphemeralContainer(
            name="debug",
            image=PRESENT,
            args=self._rng.choice((("serve",), ("setup",))),
            target_container_name=self._rng.choice(("", "one")),
        )

    def _lifecycle(self) -> Lifecycle | None:
        post_start = self._hook() if self._chance(0.1) else None
        pre_stop = self._hook() if self._chance(0.2) else None
        return Lifecycle(post_start=post_start, pre_stop=pre_stop) if post_start or pre_stop else None

    def _hook(self) -> LifecycleHandler:
        if self._chance(0.3):
            return LifecycleHandler(sleep=SleepAction(seconds=self._rng.choice((1, 5, 40))))
        return LifecycleHandler(exec=ExecAction(command=self._rng.choice(HOOKS)))

    def _chance(self, part: float) -> bool:
        return self._rng.random() < part
