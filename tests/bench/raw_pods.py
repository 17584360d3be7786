"""Pods made by bare libpod calls: what Podman itself costs, with nothing of Rootlet in between but the bodies."""

from __future__ import annotations

import base64
import contextlib
import os
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from ipc.host.clock import monotonic
from ipc.host.libpod import endpoints
from ipc.host.libpod.answers import Created
from ipc.host.libpod.endpoints import Endpoint
from ipc.k8s.api.defaults import default_pod
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from supervisor.config.containers_conf import named_profile
from tests.fakes.ownership import ownership
from tests.support.raw_libpod import Libpod
from workers.kubecontainer.naming import infra_name
from workers.kubecontainer.runtime import SpecDict
from workers.podman_files.seccomp_filters import ANNOTATION
from workers.specgen.seccomp import SeccompSettings
from workers.specgen.spec import ContainerConfig, container_spec, pod_spec

FORCE = "?force=true&timeout=0"
"""Query of a removal that waits for nobody."""
SLEEP = ("sleep", "1000000")


def make_pods(count: int, prefix: str, image: str, command: tuple[str, ...] = SLEEP) -> list[Pod]:
    """Pods of one container, as `rootlet load-test` makes them."""
    container = Container(name="c0", image=image, command=command, image_pull_policy="IfNotPresent")
    return [
        default_pod(
            Pod(
                metadata=ObjectMeta(name=f"{prefix}-{n}", namespace="default", uid=f"{prefix}-{n:08x}"),
                spec=PodSpec(containers=(container,), termination_grace_period_seconds=1),
            )
        )
        for n in range(count)
    ]


def in_flight(jobs: Sequence[Callable[[Libpod], None]], threads: int, path: str) -> float:
    """Seconds that the jobs take with so many of them at a time."""
    waiting: queue.SimpleQueue[Callable[[Libpod], None]] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    errors: list[BaseException] = []

    def work() -> None:
        with contextlib.closing(Libpod(path)) as libpod:
            work_on(libpod)

    def work_on(libpod: Libpod) -> None:
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                job(libpod)
            except BaseException as error:
                errors.append(error)
                raise

    started = monotonic()
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors, errors
    return monotonic() - started


BodyPatch = Callable[[Endpoint[Created], SpecDict], SpecDict]
"""Changes the body of a call."""


def as_it_is(_: Endpoint[Created], body: SpecDict) -> SpecDict:
    return body


def with_filter(filter: bytes) -> BodyPatch:
    """Bodies with the seccomp filter that those of the agent's containers have; empty: the OCI runtime keeps it."""
    known: SpecDict = {"annotations": {ANNOTATION: base64.b64encode(filter).decode()}} if filter else {}
    patches: dict[Endpoint[Created], SpecDict] = {endpoints.CREATE_CONTAINER: known}
    return lambda endpoint, body: {**body, **patches.get(endpoint, {})}


def start_pod(pod: Pod, instance: str, logs: Path, patch: BodyPatch = as_it_is) -> Callable[[Libpod], None]:
    """pods/create, start the infra container by its name, containers/create, start: the four calls of one pod."""

    def job(libpod: Libpod) -> None:
        spec = pod_spec(pod, ownership(instance), 0, logs / f"{pod.metadata.name}.pid")
        made = libpod.ask(endpoints.CREATE_POD, body=patch(endpoints.CREATE_POD, spec))["Id"]
        libpod.ask(endpoints.START_CONTAINER, infra_name(pod, 0))
        for container in pod.spec.containers:
            place = first_place(container, instance, made, logs)
            body = patch(endpoints.CREATE_CONTAINER, container_spec(pod, container, place))
            created = libpod.ask(endpoints.CREATE_CONTAINER, body=body)["Id"]
            libpod.ask(endpoints.START_CONTAINER, created)

    return job


def first_place(container: Container, instance: str, sandbox_id: str, logs: Path) -> ContainerConfig:
    """Place of a container that has not been made before, in a pod that has just been made."""
    return ContainerConfig(
        ownership=ownership(instance),
        sandbox_id=sandbox_id,
        attempt=0,
        backoff_s=0.0,
        image=container.image,
        log_file=logs / f"{sandbox_id}.log",
        seccomp=SeccompSettings(runtime_default=named_profile(os.environ)),
    )


def remove_pod(id: str) -> Callable[[Libpod], None]:
    def job(libpod: Libpod) -> None:
        libpod.ask(endpoints.REMOVE_POD, id, query=FORCE)

    return job


def pods_of(path: str, instance: str) -> list[str]:
    with contextlib.closing(Libpod(path)) as libpod:
        listed = libpod.ask(endpoints.LIST_PODS)
    return [pod["Id"] for pod in listed if pod["Labels"].get("rootlet.dev/instance") == instance]
