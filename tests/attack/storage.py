"""Attacks on what lies on the disk: limits, volumes, and paths that change while they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.attack.attack import Attack, all_of, fails, lasts
from tests.attack.ground import Ground
from tests.e2e.manifests import STAY, Json, container, pod

LIMIT: Final = {"name": "cache", "emptyDir": {"sizeLimit": "3Mi"}}
MOUNT: Final = {"name": "cache", "mountPath": "/cache"}
DEEP: Final = "i=0; while [ $i -lt 150 ]; do mkdir d; cd d; i=$((i+1)); done"
FILL: Final = "dd if=/dev/zero of=file bs=1M count=5 2>/dev/null"
GIVEN: Final = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log")
FEW: Final = {"limits": {"ephemeral-storage": "3Mi"}}
OUTSIDE: Final = "not for any container"
VICTIMS: Final = 12
SWAPS: Final = "cd /shared; while true; do {making}; rm -rf x; ln -s {outside} x; rm -rf x; done"


def _fills(name: str, script: str) -> Json:
    return pod(name, container(script=f"cd /cache; {script}; {STAY}", volumeMounts=[MOUNT]), volumes=[LIMIT])


def _swapped(ground: Ground, victim: Json, prefix: str) -> list[str]:
    """Pods use the path ``x`` while a container makes it a directory and a link out in turn; what they saw there."""
    outside, shared = ground.directory / "outside", ground.directory / "shared"
    for directory in (outside, shared):
        directory.mkdir(exist_ok=True)
        directory.chmod(0o777)
    (outside / "secret").write_text(OUTSIDE)
    swaps = SWAPS.format(making="mkdir x 2>/dev/null", outside=outside)
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    ground.agent.run(pod(f"{prefix}-swaps", container(script=swaps, volumeMounts=mounts), volumes=[_shared(shared)]))
    names = [f"{prefix}-{number}" for number in range(VICTIMS)]
    ground.write(*({**victim, "metadata": {"name": name}} for name in names))
    ground.last(12)
    return [ground.agent.output(name) for name in names]


def _shared(path: Path) -> Json:
    return {"name": "shared", "hostPath": {"path": str(path)}}


def _sub_path(ground: Ground) -> None:
    looks = container(
        script=f"cat /part/secret; echo seen; {STAY}",
        volumeMounts=[{"name": "shared", "mountPath": "/part", "subPath": "x"}],
    )
    seen = _swapped(ground, pod("any", looks, volumes=[_shared(ground.directory / "shared")]), "sub-path")
    assert not [text for text in seen if OUTSIDE in text], "a sub-path led out of its volume"


def _host_path(ground: Ground) -> None:
    looks = container(
        script=f"cat /part/secret; echo seen; {STAY}", volumeMounts=[{"name": "shared", "mountPath": "/part"}]
    )
    volume = {"name": "shared", "hostPath": {"path": str(ground.directory / "shared" / "x"), "type": "Directory"}}
    _swapped(ground, pod("any", looks, volumes=[volume]), "host-path")


def _leaves_nothing(ground: Ground) -> None:
    """The pod's directory goes with it, whatever lies there."""
    agent = ground.agent
    ground.until(lambda: "made" in agent.output("strange"), "it is made")
    directory = agent.state / "pods" / str(agent.pods()["strange"]["metadata"]["uid"])
    assert directory.exists()
    agent.remove("strange")
    ground.until(lambda: "strange" not in agent.pods(), "it is gone")
    ground.until(lambda: not directory.exists(), "so is its directory", 120)


ATTACKS: Final = (
    Attack(
        "deep-tree",
        "A container hides what it writes below 150 directories.",
        "be evicted",
        fails("deep", "Evicted"),
        (_fills("deep", f"{DEEP}; {FILL}"),),
    ),
    Attack(
        "moving-tree",
        "A container moves its directories about while they are measured.",
        "be evicted",
        fails("moves", "Evicted"),
        (_fills("moves", f"{DEEP}; {FILL}; cd /cache; while true; do mv d e; mv e d; done"),),
        is_quick=False,
    ),
    Attack(
        "given-files",
        "A container with a limit fills the files that it was given: hosts, hostname, resolv.conf, its last words.",
        "be evicted",
        all_of(*(fails(f"given-{number}", "Evicted") for number in range(len(GIVEN)))),
        tuple(
            pod(f"given-{number}", container(script=f"{FILL.replace('of=file', f'of={path}')}; {STAY}", resources=FEW))
            for number, path in enumerate(GIVEN)
        ),
        is_quick=False,
    ),
    Attack(
        "removed-files",
        "A container removes the file that it fills, so that nobody sees it: in its layer, in a volume.",
        "be evicted",
        all_of(*(fails(name, "Evicted") for name in ("removed-volume", "removed-layer"))),
        (
            _fills("removed-volume", f"exec 3>file; rm file; {FILL.replace('of=file', '>&3')}"),
            pod(
                "removed-layer",
                container(script=f"exec 3>/f; rm /f; {FILL.replace('of=file', '>&3')}; {STAY}", resources=FEW),
            ),
        ),
        is_quick=False,
    ),
    Attack(
        "many-files",
        "A container has 200,000 files before it writes what is beyond its limit.",
        "be evicted",
        fails("many-files", "Evicted"),
        (_fills("many-files", f"busybox seq 200000 | busybox xargs touch; {FILL}"),),
        is_quick=False,
    ),
    Attack(
        "strange-files",
        "A container leaves what is hard to remove: closed directories, no text, sockets, FIFOs, a thousand levels.",
        "be deleted, with all of it",
        _leaves_nothing,
        (
            pod(
                "strange",
                container(
                    script="cd /cache; mkdir -p closed/in; chmod 0 closed/in closed; busybox mkfifo fifo; "
                    "ln -s / root; ln -s loop loop; touch \"$(printf 'a\\nb')\" \"$(printf '\\377\\376')\" -- -rf; "
                    f"{DEEP.replace('150', '1000')}; echo made; {STAY}",
                    volumeMounts=[MOUNT],
                ),
                volumes=[{"name": "cache", "emptyDir": {}}],
            ),
        ),
        is_quick=False,
    ),
    Attack(
        "sub-path-swap",
        "A container makes a sub-path a directory and a link out of its volume in turn, while twelve pods mount it.",
        "wait, or see what lies in the volume; never what lies outside",
        _sub_path,
        is_quick=False,
    ),
    Attack(
        "host-path-swap",
        "The same with a hostPath of type Directory, below a directory that a container may change.",
        "wait, or see what the path leads to at that moment: its author has named it",
        all_of(_host_path, lasts(1)),
        is_quick=False,
    ),
)
