"""Attacks by a manifest's author."""

from __future__ import annotations

import json
from typing import Final

from tests.attack.attack import Attack, all_of, lasts, ready, refused, tells, waits
from tests.attack.ground import NODE, Ground
from tests.e2e.manifests import Json, container, pod, secret

NO_HOST: Final = "é..x"
LONG: Final = 400_000
STEER: Final = "\x1b]0;owned\x07\u202edetpyrcne\u2066"
BOMB: Final = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


def _probed(name: str, **probe: object) -> Json:
    return pod(name, container(readinessProbe={"periodSeconds": 1, **probe}))


def _mounted(name: str, **fields: str) -> Json:
    mounts = [{"name": "data", "mountPath": "/data", **fields}]
    return pod(name, container(volumeMounts=mounts), volumes=[{"name": "data", "emptyDir": {}}])


def _documents(ground: Ground) -> None:
    for name, text in {
        "bomb": BOMB,
        "deep": "[" * 200_000,
        "deep-map": "{a: " * 50_000,
        "keys": "{" + ", ".join(f"? [{n}] : {n}" for n in range(50_000)) + "}",
        "digits": "a: " + "9" * 1_000_000,
        "dates": "a: 9999999-99-99T99:99:99",
        "tags": "!!python/object/apply:os.system ['touch /tmp/rootlet-attack-owned']",
        "handles": "%TAG ! " + "x" * 100_000 + "\n---\n" + "!a " * 10_000,
        "documents": "---\n{}\n" * 20_000,
    }.items():
        ground.agent.write_file(f"{name}.yaml", text)
        ground.until(lambda name=name: ground.is_refused(name, ""), f"{name} is refused")  # type: ignore[misc]


def _shown(ground: Ground) -> None:
    """Nothing that people are shown steers their terminal."""
    ground.agent.until_ready(["steers"])
    shown = [
        ground.agent.describe("steers"),
        ground.agent.cli("get", "pods").out,
        ground.agent.cli("get", "events").out,
    ]
    assert not [char for char in "\x1b\x07\u202e\u2066" if any(char in text for text in shown)]


def _many_edits(ground: Ground) -> None:
    """Each is another pod for the same name."""
    for number in range(100):
        made = pod("edited", container(script=f"exec sleep {1000 + number}"))
        ground.agent.write_file("edited.yaml", json.dumps(made))
    ground.agent.until_ready(["edited"])


_SECRET: Final = "planted-by-an-attack-71c0"
_SAYS: Final = f'echo "{STEER} $PASSWORD" | tee /dev/termination-log; exit 1'
_FROM: Final = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "planted-by-attack", "key": "password"}}}]


def _untold(ground: Ground) -> None:
    """Probe and termination message are told without it."""
    agent = ground.agent
    ground.until(lambda: any("<secret>" in text for text in agent.messages("says", "Unhealthy")), "the probe is told")
    told = json.dumps([agent.events(), agent.pods()]) + agent.log_text() + agent.describe("says")
    assert _SECRET not in told
    assert not [path for path in agent.state.rglob("events.jsonl") if _SECRET in path.read_text()]


ATTACKS: Final = (
    Attack(
        "expansion-quadratic",
        "A probe's command is 60,000 unclosed references.",
        "run, or be refused; its probe may fail",
        lasts(3),
        (_probed("quadratic", exec={"command": ["true", "$(" * 60_000]}),),
    ),
    Attack(
        "expansion-bomb",
        "Variables double one another forty times.",
        "wait: no process can be given that",
        waits("doubles", ["CreateContainerConfigError", "CreateContainerError", "RunContainerError"]),
        (
            pod(
                "doubles",
                container(
                    env=[
                        {"name": "A0", "value": "x" * 64},
                        *({"name": f"A{n}", "value": f"$(A{n - 1})$(A{n - 1})"} for n in range(1, 40)),
                    ]
                ),
            ),
        ),
        is_quick=False,
    ),
    Attack(
        "documents",
        "Documents are YAML bombs, nested 200,000 deep, tagged, of a million digits, twenty thousand in a file.",
        "be refused",
        _documents,
        is_quick=False,
    ),
    Attack(
        "long-image",
        "An image's name has 400,000 characters.",
        "be refused, the field being named",
        refused("long-image", words="spec.containers[0].image"),
        (pod("long-image", container(image="a" * LONG)),),
    ),
    Attack(
        "long-paths",
        "Paths of mounts, volumes and working directories have 400,000 characters.",
        "be refused, the field being named",
        all_of(
            refused("long-mount", words="mountPath"),
            refused("long-sub-path", words="subPath"),
            refused("long-expression", words="subPathExpr"),
            refused("long-host-path", words="hostPath.path"),
            refused("long-directory", words="workingDir"),
            refused("long-message-path", words="terminationMessagePath"),
        ),
        (
            _mounted("long-mount", mountPath="/" + "m" * LONG),
            _mounted("long-sub-path", subPath="s" * LONG),
            _mounted("long-expression", subPathExpr="s" * LONG),
            pod("long-host-path", volumes=[{"name": "data", "hostPath": {"path": "/" + "h" * LONG}}]),
            pod("long-directory", container(workingDir="/" + "w" * LONG)),
            pod("long-message-path", container(terminationMessagePath="/" + "t" * LONG)),
        ),
    ),
    Attack(
        "image-names",
        "Images have names that Podman cannot have, or too long ones for it.",
        "wait with InvalidImageName or ErrImagePull",
        all_of(
            *(
                waits(f"image-{n}", ["InvalidImageName", "ErrImagePull", "ImagePullBackOff", "ImageInspectError"])
                for n in range(4)
            )
        ),
        tuple(
            pod(f"image-{n}", container(image=image, imagePullPolicy="Always"))
            for n, image in enumerate(
                [
                    "localhost/" + "a" * 254,
                    "localhost:1/" + "a/" * 100 + "a",
                    "localhost/../x",
                    "-\u202e\udcff".encode("utf-8", "replace").decode(),
                ]
            )
        ),
        is_quick=False,
    ),
    Attack(
        "quantities",
        "Quantities have 5,000 digits and exponents of a billion.",
        "be refused",
        refused("digits", "exponent", words="resources"),
        (
            pod("digits", container(resources={"limits": {"memory": "9" * 5000}})),
            pod("exponent", container(resources={"limits": {"memory": "1e999999999"}})),
        ),
    ),
    Attack(
        "no-hosts",
        "Hosts of probes and hooks are no names: empty labels, no IDNA.",
        "not be Ready; its stop is not delayed by its hook",
        all_of(tells("no-probe-host", "Unhealthy"), ready("no-hook-host")),
        (
            _probed("no-probe-host", httpGet={"host": NO_HOST, "port": 80}),
            pod("no-hook-host", container(lifecycle={"preStop": {"httpGet": {"host": NO_HOST, "port": 80}}})),
        ),
        is_quick=False,
    ),
    Attack(
        "steering-texts",
        "Annotations, commands and labels steer terminals and turn the reading direction.",
        "run",
        _shown,
        (
            {
                **pod("steers", container(env=[{"name": "STEER", "value": STEER}], args=[STEER])),
                "metadata": {"name": "steers", "annotations": {"steer": STEER}},
            },
        ),
        is_quick=False,
    ),
    Attack(
        "secrets-told",
        "Probes and termination messages print a Secret's value among control characters.",
        "fail, without the value being told",
        _untold,
        (
            secret("planted-by-attack", password=_SECRET),
            pod(
                "says",
                container(
                    env=_FROM,
                    readinessProbe={"exec": {"command": ["sh", "-c", _SAYS]}, "periodSeconds": 1},
                ),
            ),
        ),
    ),
    Attack(
        "edits",
        "A pod's manifest is changed a hundred times at once, each time to another pod.",
        "be replaced as often as is seen",
        _many_edits,
        is_quick=False,
    ),
    Attack(
        "values",
        "Manifests are at the bounds of what one may hold: values, containers, variables, host aliases.",
        "be refused, or run",
        all_of(lambda ground: ground.until(lambda: bool(ground.agent.events(NODE)), "it is told"), lasts(5)),
        (
            pod("many-variables", container(env=[{"name": f"V{n}", "value": "x"} for n in range(20_000)])),
            pod("many-aliases", hostAliases=[{"ip": "127.0.0.1", "hostnames": ["x"] * 1000}] * 50),
            pod("many-containers", *(container(f"c{n}", image="localhost/none") for n in range(500))),
        ),
        is_quick=False,
    ),
)
