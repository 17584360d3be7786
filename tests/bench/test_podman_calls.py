"""How long each libpod call takes on this Podman, one at a time: what `tests.fakes.libpod_server` takes for its own.

The calls are raw, on one connection. Their time has a part that grows with what the user has: lists look at every
container or pod of the user, whosever it is. So everything is measured beside a few pods and beside many.
"""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ipc.host.clock import monotonic
from ipc.host.libpod import endpoints
from ipc.host.libpod.endpoints import Endpoint
from tests.bench.raw_pods import FORCE, first_place, make_pods
from tests.fakes.ownership import ownership
from tests.support.podman_service import PodmanService
from tests.support.raw_libpod import Libpod
from workers.kubecontainer import labels
from workers.kubecontainer.naming import infra_name
from workers.specgen.spec import container_spec, pod_spec

pytestmark = [pytest.mark.bench, pytest.mark.podman, pytest.mark.timeout(900)]

FEW, MANY = 5, 35
REPEATS = 15


class Stopwatch:
    """Durations in milliseconds by name."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[None]:
        begin = monotonic()
        yield
        self.taken.setdefault(name, []).append((monotonic() - begin) * 1000)

    def medians(self) -> dict[str, dict[str, float]]:
        return {
            name: {"min": round(min(taken), 2), "median": round(statistics.median(taken), 2), "samples": len(taken)}
            for name, taken in sorted(self.taken.items())
        }


def test_calls(podman_service: PodmanService, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instance = podman_service.new_instance()
    found: dict[str, Any] = {}
    with contextlib.closing(Libpod(podman_service.socket)) as libpod:
        watch, made = Stopwatch(), []
        for index, pod in enumerate(make_pods(MANY, "calls", podman_service.image)):
            made.append(_make(libpod, pod, instance, tmp_path, watch))
            if index + 1 in (FEW, MANY):
                found[f"reads beside {index + 1}"] = _reads(libpod, made, instance, podman_service.image)
        for id, container in made:
            _end(libpod, id, container, watch)
        found["mutations"] = watch.medians()
    with capsys.disabled():
        print("\n" + json.dumps(found, indent=1))


def _make(libpod: Libpod, pod: Any, instance: str, logs: Path, watch: Stopwatch) -> tuple[str, str]:
    with watch.of("create pod"):
        spec = pod_spec(pod, ownership(instance), 0, logs / f"{pod.metadata.name}.pid")
        id = libpod.ask(endpoints.CREATE_POD, body=spec)["Id"]
    with watch.of("start infra container"):
        libpod.ask(endpoints.START_CONTAINER, infra_name(pod, 0))
    container = pod.spec.containers[0]
    place = first_place(container, instance, id, logs)
    with watch.of("create container"):
        made = libpod.ask(endpoints.CREATE_CONTAINER, body=container_spec(pod, container, place))["Id"]
    with watch.of("start container"):
        libpod.ask(endpoints.START_CONTAINER, made)
    return id, made


def _end(libpod: Libpod, id: str, container: str, watch: Stopwatch) -> None:
    with watch.of("kill container"):
        libpod.ask(endpoints.KILL_CONTAINER, container, query="?signal=KILL")
    with watch.of("remove container"):
        libpod.ask(endpoints.REMOVE_CONTAINER, container, query=f"{FORCE}&volumes=true")
    with watch.of("remove pod"):
        libpod.ask(endpoints.REMOVE_POD, id, query=FORCE)


def _reads(libpod: Libpod, made: list[tuple[str, str]], instance: str, image: str) -> dict[str, Any]:
    watch = Stopwatch()
    ours = f"{labels.INSTANCE}={instance}"
    uid = libpod.ask(endpoints.INSPECT_POD, made[0][0])["Labels"][labels.POD_UID]

    def timed(name: str, endpoint: Endpoint[object], names: Sequence[str] = ("",), query: str = "") -> Any:
        answer = None
        for repeat in range(REPEATS):
            with watch.of(name):
                answer = libpod.ask(endpoint, names[repeat % len(names)], query=query)
        return answer

    def filtered(*more: str, **filters: list[str]) -> str:
        return f"?all=true&filters={json.dumps({'label': [ours, *more], **filters}, separators=(',', ':'))}"

    pods, containers = zip(*made, strict=True)
    listed = timed("list containers", endpoints.LIST_CONTAINERS, query=filtered())
    timed("list pods of one uid", endpoints.LIST_PODS, query=filtered(f"{labels.POD_UID}={uid}"))
    timed("list empty pods", endpoints.LIST_EMPTY_PODS, query=filtered(**{"ctr-number": ["0"]}))
    shown = timed("inspect container", endpoints.INSPECT_CONTAINER, containers)
    timed("inspect pod", endpoints.INSPECT_POD, pods)
    timed("inspect image", endpoints.INSPECT_IMAGE, (image,))
    return {
        "containers of ours": len(listed),
        "containers of the user": len(libpod.ask(endpoints.LIST_CONTAINERS, query="?all=true")),
        "bytes per listed container": len(json.dumps(listed, separators=(",", ":"))) // len(listed),
        "bytes of an inspect": len(json.dumps(shown, separators=(",", ":"))),
        "ms": watch.medians(),
        **({"inspect": shown, "listed": listed[0]} if len(made) == FEW else {}),
    }
