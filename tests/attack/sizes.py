"""Attacks by a manifest's author with very much of what is small: names of resources, volumes, large pods."""

from __future__ import annotations

import functools
import json
from typing import Final

from tests.attack.attack import Attack, all_of, lasts, ready
from tests.attack.ground import Ground
from tests.e2e.manifests import Json, container, pod

LARGE_PODS: Final = 40
LARGE_BYTES: Final = 900_000
"""Size of one pod's variables: those of all pods are more than the link to a reader may hold."""
VALUE_BYTES: Final = 30_000
NAMES: Final = 5_000
VOLUMES: Final = 400
SLOW_FILES: Final = 12
SLOW: Final = b'a: ["\\\'", ' + b"a," * 120_000 + b"]"
"""Document with an escape that only the slow parser knows: it takes four seconds or more."""
HEAVY_FILES: Final = 8
HEAVY_VALUES: Final = 20_000
BESIDE: Final = pod("beside-slow")
HOST_PATHS: Final = 200
GONE_S: Final = 60.0


def _large(number: int, edit: int = 0) -> Json:
    """A pod that no worker can start, and everybody is told of."""
    env = [{"name": f"V{n}", "value": f"{edit}" + "x" * VALUE_BYTES} for n in range(LARGE_BYTES // VALUE_BYTES)]
    return pod(f"large-{number}", container(image="localhost/none", imagePullPolicy="Never", env=env))


def _flood(ground: Ground) -> None:
    """All pods come at once, and change at once; the API server tells each as it is at last."""
    for edit in (0, 1):
        ground.write(*(_large(number, edit) for number in range(LARGE_PODS)))

    def has_all() -> bool:
        found = [one for name, one in ground.agent.pods().items() if name.startswith("large-")]
        return len(found) == LARGE_PODS and all(
            one["spec"]["containers"][0]["env"][0]["value"].startswith("1") for one in found
        )

    ground.until(has_all, "every large pod is told as it is now")


def _asking(number: int, each: int) -> Json:
    limits = {f"attack.example/{number}-{n}": "1" for n in range(each)}
    return container(f"c{number}", image="localhost/none", imagePullPolicy="Never", resources={"limits": limits})


def _told(name: str, ground: Ground) -> None:
    """Wait until a pod has a status, or was refused in words."""
    ground.until(
        lambda: bool(ground.agent.pods().get(name, {}).get("status")) or ground.is_refused(name, ""), f"{name} is told"
    )


def _many_volumes(name: str) -> Json:
    volumes = [{"name": f"v{n}", "emptyDir": {}} for n in range(VOLUMES)]
    mounts = [{"name": f"v{n}", "mountPath": f"/v{n}"} for n in range(VOLUMES)]
    return pod(name, container(volumeMounts=mounts), volumes=volumes)


def _goes(name: str, ground: Ground) -> None:
    """Remove a pod, and wait until nothing of it is left."""
    ground.agent.remove(name)
    ground.until(lambda: name not in ground.agent.pods(), f"{name} is gone", GONE_S)
    left = [path for path in ground.agent.state.rglob("v399") if path.is_dir()]
    assert not left, left


def _paths_above(ground: Ground) -> None:
    """Every mount of a directory that the agent's own lie in is one more, not twice as many."""
    volumes = [{"name": f"v{n}", "hostPath": {"path": str(ground.agent.state.parent)}} for n in range(HOST_PATHS)]
    mounts = [{"name": f"v{n}", "mountPath": f"/v{n}"} for n in range(HOST_PATHS)]
    ground.write(pod("paths-above", container(volumeMounts=mounts), volumes=volumes))
    ready("paths-above")(ground)
    _goes("paths-above", ground)


def _slow_documents(ground: Ground) -> None:
    """A pod that comes with slow documents runs before they are read, and they leave nothing in the agent's memory."""
    names = [f"slow-{number:02}.yaml" for number in range(SLOW_FILES)]
    for number, name in enumerate(names):
        ground.put(ground.agent.manifests, name.encode(), SLOW + b"\n" * number)
    ground.agent.run(BESIDE)
    assert not ground.is_refused("slow-11", ""), "it has waited for the last of them"
    ground.until(lambda: ground.is_refused("slow-00", ""), "the first is refused")


def _heavy_manifests(ground: Ground) -> None:
    """Files of very many values come, and change; the API server tells each pod as it is at last."""
    names = [f"heavy-{number}" for number in range(HEAVY_FILES)]

    def is_told(edit: str) -> bool:
        found = ground.agent.pods()
        return all(name in found and found[name]["spec"]["containers"][0]["env"][0]["value"] == edit for name in names)

    for edit in ("a", "b"):
        env = [{"name": f"V{n}", "value": edit} for n in range(HEAVY_VALUES)]
        for name in names:
            heavy = pod(name, container(image="localhost/none", imagePullPolicy="Never", env=env))
            ground.put(ground.agent.manifests, f"{name}.yaml".encode(), b"# YAML\n" + json.dumps(heavy).encode())
        ground.until(functools.partial(is_told, edit), f"each is read as it is: {edit}")


ATTACKS: Final = (
    Attack(
        "resource-names",
        "Pods ask for 5,000 resources that nobody has, in one container, in many, and in init containers.",
        "be told why they do not run",
        all_of(
            *(functools.partial(_told, name) for name in ("names-of-one", "names-of-many", "names-of-inits")), lasts(3)
        ),
        (
            pod("names-of-one", _asking(0, NAMES)),
            pod("names-of-many", *(_asking(n, 10) for n in range(NAMES // 10))),
            pod("names-of-inits", initContainers=[_asking(n, 10) for n in range(NAMES // 10)]),
        ),
        is_quick=False,
    ),
    Attack(
        "many-volumes",
        "A pod has 400 volumes and mounts them all.",
        "run, and be gone in time",
        all_of(ready("volumes"), functools.partial(_goes, "volumes")),
        (_many_volumes("volumes"),),
        is_quick=False,
    ),
    Attack(
        "slow-documents",
        f"{SLOW_FILES} manifests come, each of which takes seconds to parse.",
        "be refused, one after the other",
        _slow_documents,
        is_quick=False,
    ),
    Attack(
        "heavy-manifests",
        f"{HEAVY_FILES} manifests of {HEAVY_VALUES:,} variables each come, and change.",
        "wait for their image",
        _heavy_manifests,
        is_quick=False,
    ),
    Attack(
        "paths-above",
        f"A pod mounts the directory that the agent's own directories lie in {HOST_PATHS} times.",
        "run, and be gone in time",
        _paths_above,
        is_quick=False,
    ),
    Attack(
        "large-pods",
        "Forty pods of a megabyte come at once, and change at once.",
        "wait for their image; everybody who reads of pods reads of them",
        _flood,
        is_quick=False,
    ),
)
