"""Attacks by images, and by whoever answers for a registry."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from tests.attack.attack import Attack, Strike, all_of
from tests.attack.ground import Ground
from tests.attack.hostile_registry import HOSTILE_CONFIG
from tests.e2e.manifests import STAY, Json, container, pod
from tests.support.podman_service import IMAGE, podman

FAILED: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "InvalidImageName"})
LOAD_S: Final = 60.0
ESCAPED: Final = Path("/tmp/rootlet-attack-escaped")
SHARED: Final[Json] = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}


def _pulled(name: str, image: str) -> Json:
    return pod(name, container(image=image, imagePullPolicy="Always"))


def _not_pulled(*whats: str) -> Strike:
    """The pull fails, and says so in words that may be shown."""

    def strike(ground: Ground) -> None:
        for what in whats:
            ground.write(_pulled(what, ground.registry.image(what)))
        for what in whats:
            ground.until(
                lambda what=what: ground.agent.waiting(what).get("reason") in FAILED,  # type: ignore[misc]
                f"{what} is not pulled",
                120,
            )
        told = json.dumps(ground.agent.events(), ensure_ascii=False)
        assert not [char for char in "\x1b\u202e" if char in told]
        assert max(len(event["message"]) for event in ground.agent.events()) < 5000

    return strike


def _hostile_config(ground: Ground) -> None:
    """The pod is told what is wrong, or it runs."""
    ground.write(_pulled("hostile-config", ground.registry.image("hostile-config")))
    ground.until(
        lambda: bool({"Failed", "Started"} & ground.agent.reasons("hostile-config").keys()), "it runs or is told about"
    )


def _escapes(ground: Ground) -> None:
    ESCAPED.unlink(missing_ok=True)
    ground.write(_pulled("escapes", ground.registry.image("escapes")))
    ground.until(
        lambda: bool({"Failed", "Started"} & ground.agent.reasons("escapes").keys()), "it runs or is told about", 120
    )
    assert not ESCAPED.exists()


def _hostile_labels(ground: Ground) -> None:
    """The container runs, and stops without the image's hook when the manifest names another."""
    name, directory = "localhost/rootlet-attack-labels:latest", ground.directory / "labels"
    directory.mkdir(exist_ok=True)
    labels = {
        **HOSTILE_CONFIG["Labels"],
        "rootlet.dev/instance": "somebody-else",
        "io.kubernetes.container.preStopHandler": json.dumps({"exec": {"command": ["touch", "/shared/hooked"]}}),
    }
    text = "".join(f"LABEL {json.dumps(key)}={json.dumps(value)}\n" for key, value in labels.items())
    (directory / "Containerfile").write_text(f"FROM {IMAGE}\n{text}")
    podman("build", "--quiet", "--pull=never", "--tag", name, str(directory))
    try:
        volumes = [{"name": "shared", "emptyDir": {}}]
        for container_name in ("first", "second"):
            ground.write(pod("labels", {**container(container_name, **SHARED), "image": name}, volumes=volumes))
            ground.until(lambda: "second" in _running(ground) or container_name == "first", "it is another container")  # noqa: B023
            ground.agent.until_ready(["labels"])
        ground.until(lambda: _running(ground) == {"second"}, "only the second one runs")
        assert ground.agent.inside("labels", "ls /shared", "second") == ""
        ground.agent.remove("labels")
        ground.until(lambda: "labels" not in ground.agent.pods(), "it is gone")
    finally:
        podman("image", "rm", "--force", name)


def _running(ground: Ground) -> set[str]:
    statuses = ground.agent.pods().get("labels", {}).get("status", {}).get("containerStatuses", ())
    return {status["name"] for status in statuses if "running" in status["state"]}


def _tampered(ground: Ground) -> None:
    """Each archive is loaded by the same user while pods run, and a pod is made of what is in the storage then."""
    good = ground.directory / "good"
    podman("save", "--quiet", "--format", "oci-dir", "--output", str(good), IMAGE)
    for number, tamper in enumerate((_cut_blobs, _wrong_index, _deep_config, _swapped_layer)):
        directory, archive = ground.directory / f"tampered-{number}", ground.directory / f"tampered-{number}.tar"
        subprocess.run(["cp", "-r", str(good), str(directory)], check=True, timeout=LOAD_S)
        tamper(directory)
        with tarfile.open(archive, "w") as tar:
            for path in sorted(directory.rglob("*")):
                tar.add(path, str(path.relative_to(directory)), recursive=False)
        load = ("podman", "load", "--quiet", "--input", str(archive))
        ground.run(*load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(LOAD_S)
        ground.agent.run(pod(f"after-{number}", container(script=STAY)))


def _blobs(directory: Path) -> list[Path]:
    return sorted((path for path in (directory / "blobs" / "sha256").iterdir()), key=os.path.getsize)


def _cut_blobs(directory: Path) -> None:
    for path in _blobs(directory):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _wrong_index(directory: Path) -> None:
    index = json.loads((directory / "index.json").read_bytes())
    index["manifests"] *= 10_000
    (directory / "index.json").write_text(json.dumps(index))


def _deep_config(directory: Path) -> None:
    _blobs(directory)[0].write_text("[" * 1_000_000)


def _swapped_layer(directory: Path) -> None:
    _blobs(directory)[-1].write_bytes(b"\x1f\x8b" + os.urandom(100_000))


ATTACKS: Final = (
    Attack(
        "registry-lies",
        "A registry redirects for ever, asks for a login for ever, and answers other digests, no JSON and loud errors.",
        "wait with ErrImagePull or ImagePullBackOff",
        _not_pulled("wrong-digest", "redirects", "auth-loop", "loud", "no-json", "deep-json"),
    ),
    Attack(
        "registry-endless",
        "A registry answers manifests and layers without end, five thousand layers, or not at all.",
        "wait with ErrImagePull; pulls of others wait for it until imagePullTimeout when they are serialized",
        _not_pulled("endless-manifest", "endless-layer", "many-layers", "silent"),
        is_quick=False,
    ),
    Attack(
        "image-labels",
        "An image has all labels of the agent's own: numbers of 5,000 digits, a preStop hook.",
        "run; it is stopped without the image's hook",
        _hostile_labels,
        is_quick=False,
    ),
    Attack(
        "image-config",
        "An image's configuration has variables without names, ports and signals that there are not, twenty volumes.",
        "run, or wait with words",
        _hostile_config,
        is_quick=False,
    ),
    Attack(
        "image-layers",
        "An image's layer has paths and links that lead out of it.",
        "run, or wait with words; nothing is written outside",
        _escapes,
        is_quick=False,
    ),
    Attack(
        "image-archives",
        "The same user loads archives of images that are cut, deep, doubled ten thousand times and swapped.",
        "fail to be loaded",
        all_of(_tampered),
        is_quick=False,
    ),
)
