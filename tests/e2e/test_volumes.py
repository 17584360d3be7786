"""Volumes of each kind: what containers see of them, how long they last, and what keeps a pod waiting."""

from __future__ import annotations

import os
import socket
import tarfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, container_status, restart_count
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.volumes import (
    claim,
    empty_dir,
    ephemeral,
    host_path,
    mount,
    mounting,
    pod_directory,
    unshare,
)
from tests.support.podman_service import IMAGE, podman, remove_by_force
from workers.volumemanager.plugins.back_off import INITIAL_PAUSE_S

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the user's with something in it."""
    made = tmp_path_factory.mktemp("host")
    (made / "file").write_text("of the host")
    (made / "directory").mkdir()
    (made / "directory" / "inner").write_text("inner")
    return made


@pytest.fixture
def claim_name(agent: Agent) -> Iterator[str]:
    """A claim of a name that nobody else uses; its volume goes with the test."""
    name = f"{agent.instance}-data"
    yield name
    remove_by_force("volume", name)


@pytest.fixture(scope="module")
def seeing(agent: Agent, host: Path) -> Iterator[Agent]:
    name = f"{agent.instance}-seen"
    volumes = [
        empty_dir("scratch"),
        {"name": "of-no-kind"},
        host_path("directory", host / "directory", "Directory"),
        host_path("file", host / "file", "File"),
        host_path("untyped", host / "made" / "for-it"),
        {"name": "image", "image": {"reference": IMAGE, "pullPolicy": "Never"}},
        claim("claim", name),
        claim("claim-read-only", name, readOnly=True),
    ]
    mounts = [mount(volume["name"], f"/v/{volume['name']}") for volume in volumes]
    mounts += [mount("scratch", "/read-only", readOnly=True), mount("directory", "relative/place", readOnly=True)]
    agent.run(mounting("seeing", volumes, *mounts))
    yield agent
    agent.remove("seeing")
    agent.until_gone(["seeing"])
    podman("volume", "rm", name)


def test_what_a_container_sees(seeing: Agent, host: Path) -> None:
    says = seeing.inside(
        "seeing",
        "cat /v/file /v/directory/inner /relative/place/inner; ls /v/image/bin/busybox; ls /v/scratch /v/of-no-kind;"
        "busybox stat -c %a /v/scratch; echo new > /v/untyped/new",
    )
    assert says.split("\n") == ["of the hostinnerinner/v/image/bin/busybox", "/v/of-no-kind:", "", "/v/scratch:", "777"]
    assert (host / "made" / "for-it" / "new").read_text() == "new\n"


@pytest.mark.parametrize("place", ["/v/image", "/read-only", "/relative/place", "/v/claim-read-only"])
def test_what_a_container_may_not_write(seeing: Agent, place: str) -> None:
    assert "Read-only file system" in seeing.inside("seeing", f"echo x > {place}/file")


@pytest.mark.parametrize("place", ["/v/scratch", "/v/directory", "/v/claim", "/v/untyped"])
def test_what_a_container_may_write(seeing: Agent, place: str) -> None:
    assert seeing.inside("seeing", f"echo x > {place}/file; cat {place}/file") == "x"


def test_an_empty_dir_outlives_its_containers_and_not_its_pod(agent: Agent) -> None:
    script = f"if busybox test -e /data/once; then {STAY}; fi; mkdir /data/once /data/own; echo 1 > /data/own/file;"
    others = "busybox chown -R 1234:1234 /data/own; busybox chmod 700 /data/own; exit 1"
    agent.write(pod("lasting", container(script=script + others, volumeMounts=[mount("data", "/data")]), volumes=[
        empty_dir("data")
    ]))  # fmt: skip
    agent.until(lambda: restart_count(agent.pods().get("lasting", {"status": {}})) == 1, "it runs a second time")
    directory = pod_directory(agent, "lasting")
    volume = directory / "volumes" / "kubernetes.io~empty-dir" / "data"
    assert (volume / "once").is_dir()
    with pytest.raises(PermissionError):
        os.listdir(volume / "own")

    agent.remove("lasting")
    agent.until_gone(["lasting"])
    agent.until(lambda: not directory.exists(), "its directory is gone, with files of another user in it")


def test_memory_is_limited_and_shared(agent: Agent) -> None:
    volumes = [empty_dir("data", medium="Memory", sizeLimit="1Mi")]
    sees = [mount("data", "/data")]
    agent.run(pod("memory", container(volumeMounts=sees), container("other", volumeMounts=sees), volumes=volumes))
    assert agent.inside("memory", "echo shared > /data/file; busybox stat -f -c %T /data") == "tmpfs"
    assert agent.inside("memory", "cat /data/file", "other") == "shared"
    too_much = agent.inside("memory", "busybox dd if=/dev/zero of=/data/big bs=64k count=32; rm /data/big")
    assert "No space left on device" in too_much

    # The volume outlives a container, Podman's service and the agent.
    agent.kill_and_recover("podman")
    agent.restart()
    before = container_status(agent.pods()["memory"], "other")["containerID"]
    agent.cli("exec", "memory", "-c", "other", "--", "kill", "1")
    agent.until(lambda: restart_count(agent.pods()["memory"], "other") == 1, "the other container runs again")
    agent.until_ready(["memory"])
    assert container_status(agent.pods()["memory"], "other")["containerID"] != before
    assert agent.inside("memory", "cat /data/file; echo again > /data/file", "other") == "shared"
    assert agent.inside("memory", "cat /data/file") == "again"

    directory = pod_directory(agent, "memory")
    assert str(directory) in unshare("cat", "/proc/self/mountinfo")
    agent.remove("memory")
    agent.until_gone(["memory"])
    agent.until(lambda: not directory.exists(), "its directory is gone")
    assert str(directory) not in unshare("cat", "/proc/self/mountinfo")


def test_a_host_path_of_another_type_waits(agent: Agent, host: Path) -> None:
    place = host / "comes-later"
    place.write_text("a file")
    agent.write(mounting("typed", [host_path("data", place, "Directory")], mount("data", "/data")))
    agent.until(lambda: bool(agent.messages("typed", "FailedMount")), "it waits for its volume")
    place.unlink()
    (words, *_) = agent.messages("typed", "FailedMount")
    why = f"hostPath type check failed: {place} is not a directory, it's a File"
    assert words == f'MountVolume.SetUp failed for volume "data" : {why}'
    assert agent.waiting("typed")["reason"] == "ContainerCreating"
    place.mkdir()
    (place / "here").write_text("at last")
    agent.until_ready(["typed"])
    assert agent.inside("typed", "cat /data/here") == "at last"


@pytest.mark.slow
def test_a_mount_that_fails_again_is_tried_after_growing_pauses_and_an_edit_ends_them(agent: Agent, host: Path) -> None:
    """The event's count and dates show every try: the second is half a second after the first, and each pause is twice
    the one before. The edit comes in the sixth, of 16 s; the container runs before that is over."""
    wrong, right = host / "file", host / "directory"
    tries: dict[int, float] = {}

    def count_tries() -> int:
        told = [event for event in agent.events("paused") if event["reason"] == "FailedMount"]
        for event in told:
            first, last = (datetime.fromisoformat(event[f"{which}Timestamp"]) for which in ("first", "last"))
            tries.setdefault(event["count"], (last - first).total_seconds())
        return max(tries, default=0)

    agent.write(mounting("paused", [host_path("data", wrong, "Directory")], mount("data", "/data")))
    agent.until(lambda: count_tries() >= 6, "it was tried six times")
    for count, after_s in tries.items():
        pauses_s = [INITIAL_PAUSE_S * 2**number for number in range(count - 1)]
        assert after_s >= sum(pauses_s) - 1, f"try {count}: dates are of whole seconds"
    (event,) = (event for event in agent.events("paused") if event["reason"] == "FailedMount")
    assert event["count"] == 6
    agent.run(mounting("paused", [host_path("data", right, "Directory")], mount("data", "/data")))
    assert agent.inside("paused", "cat /data/inner") == "inner"
    state = container_status(agent.pods()["paused"], "main")["state"]
    began, failed = map(datetime.fromisoformat, (state["running"]["startedAt"], event["lastTimestamp"]))
    assert (began - failed).total_seconds() < INITIAL_PAUSE_S * 2**5


def test_what_types_make_and_take(agent: Agent, host: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(host / "socket"))
        volumes = [
            host_path("directory", host / "new" / "directory", "DirectoryOrCreate"),
            host_path("file", host / "new-file", "FileOrCreate"),
            host_path("socket", host / "socket", "Socket"),
            host_path("device", Path("/dev/null"), "CharDevice"),
        ]
        agent.run(mounting("types", volumes, *(mount(volume["name"], f"/v/{volume['name']}") for volume in volumes)))
        says = agent.inside("types", "cd /v; busybox stat -c '%n %F' directory file socket device")
    assert says.split("\n") == [
        "directory directory",
        "file regular empty file",
        "socket socket",
        "device character special file",
    ]
    assert [(host / name).stat().st_mode & 0o777 for name in ("new/directory", "new-file")] == [0o755, 0o644]


def test_a_claim_is_a_podman_volume_that_stays(agent: Agent, claim_name: str) -> None:
    first = mounting("claims", [claim("data", claim_name)], mount("data", "/data"), mount("data", "/etc"))
    agent.run(first)
    says = agent.inside("claims", "echo kept > /data/file; cat /etc/file; ls /data")
    assert "kept" in says
    assert "passwd" not in says, "what the image has there is not in the volume"
    agent.remove("claims")
    agent.until_gone(["claims"])
    made = podman("volume", "inspect", "--format", '{{.Driver}} {{index .Options "o"}}', claim_name).strip()
    assert made == "local uid=0,gid=0", "the first container is root's, and so is the volume"

    agent.run(mounting("claims-again", [claim("data", claim_name)], mount("data", "/data")))
    assert agent.inside("claims-again", "cat /data/file") == "kept"
    agent.remove("claims-again")
    agent.until_gone(["claims-again"])


def test_an_ephemeral_volume_goes_with_its_pod(agent: Agent) -> None:
    agent.run(mounting("scratch", [ephemeral("data")], mount("data", "/data")))
    agent.inside("scratch", "echo kept > /data/file")
    (volume,) = agent.eye.pods_volumes()
    assert volume.startswith("scratch-data_default_")
    agent.inside("scratch", "kill 1")
    agent.until(lambda: restart_count(agent.pods()["scratch"]) == 1, "the container was restarted")
    agent.until_ready(["scratch"])
    assert agent.inside("scratch", "cat /data/file") == "kept"
    agent.remove("scratch")
    agent.until_gone(["scratch"])
    assert agent.eye.pods_volumes() == []

    agent.run(mounting("scratch", [ephemeral("data")], mount("data", "/data")))
    assert agent.inside("scratch", "ls /data") == "", "the volume of the next pod of that file is a new one"
    assert agent.eye.pods_volumes() == [volume], "with the same uid, and so the same name"
    agent.stop()
    (agent.manifests / "scratch.yaml").unlink()
    (agent.state / "checkpoint.json").unlink(missing_ok=True)
    agent.start()
    agent.until(lambda: agent.eye.pods_volumes() == [], "an agent that finds an orphan removes its volume")


def test_the_image_of_a_volume_is_told_as_it_was_when_its_container_was_made(agent: Agent, tmp_path: Path) -> None:
    """The image's name leads elsewhere by then."""
    name = f"localhost/{agent.instance}-model:1"
    image = {"name": "model", "image": {"reference": name, "pullPolicy": "Never"}}

    def told() -> tuple[object, object]:
        status = container_status(agent.pods()["told"])
        whole, part = (each.get("volumeStatus") for each in status["volumeMounts"] if each["name"] == "model")
        assert whole == part
        return status["restartCount"], whole

    def imported(content: str) -> str:
        """The digest of an image of that name."""
        (tmp_path / "file").write_text(content)
        with tarfile.open(tmp_path / "root.tar", "w") as tar:
            tar.add(tmp_path / "file", "file")
        podman("import", "--quiet", str(tmp_path / "root.tar"), name)
        return podman("image", "inspect", "--format", "{{.Digest}}", name).strip()

    def status_of(digest: str) -> dict[str, object]:
        return {"image": {"imageRef": f"{name.removesuffix(':1')}@{digest}"}}

    try:
        first = imported("first")
        agent.run(mounting("told", [image], mount("model", "/model"), mount("model", "/part", subPath="file")))
        assert told() == (0, status_of(first))
        second = imported("second")
        assert first != second
        agent.process.kill()
        agent.wait_end()
        agent.start()
        agent.until_ready(["told"])
        assert told() == (0, status_of(first)), "another agent reads it from the container"
        agent.inside("told", "kill 1")
        agent.until(lambda: told() == (1, status_of(second)), "the next container sees the image that it is now")
        assert agent.inside("told", "cat /model/file /part") == "secondsecond"
        agent.remove("told")
        agent.until_gone(["told"])
    finally:
        podman("rmi", "--force", "--ignore", name)


def test_an_image_that_is_not_there_is_its_containers_reason(agent: Agent) -> None:
    image = {"name": "image", "image": {"reference": "localhost/not-there:1", "pullPolicy": "Never"}}
    sees = container(volumeMounts=[mount("image", "/image")])
    agent.write(pod("no-image", sees, container("beside", STAY), volumes=[image]))
    agent.until(lambda: agent.waiting("no-image").get("reason") == "ErrImageNeverPull", "it waits for the image")
    assert agent.waiting("no-image")["message"].startswith('Container image "localhost/not-there:1" is not present')
    agent.until(lambda: not agent.waiting("no-image", "beside"), "the other container needs no image")


def test_an_image_that_somebody_removes_while_it_is_mounted_keeps_nothing_from_ending(
    agent: Agent, tmp_path: Path
) -> None:
    """Podman takes a mounted image for unused, and says errors that tell of the image where the container starts and
    goes. A container that is made before the image is missed fails to start, and then waits for it."""
    (tmp_path / "file").write_text("of the image")
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        tar.add(tmp_path / "file", "file")
    name = f"localhost/{agent.instance}-mounted:1"
    podman("import", "--quiet", str(tmp_path / "root.tar"), name)
    try:
        image = {"name": "image", "image": {"reference": name, "pullPolicy": "Never"}}
        pods = [mounting(f"mounted-{number}", [image], mount("image", "/image")) for number in range(2)]
        agent.run(*pods)
        assert agent.inside("mounted-0", "cat /image/file") == "of the image"
        podman("rmi", "--force", name)
        agent.inside("mounted-0", "kill 1")
        agent.until(lambda: agent.waiting("mounted-0").get("reason") == "ErrImageNeverPull", "it waits for the image")
        agent.remove("mounted-0", "mounted-1")
        agent.until_gone(["mounted-0", "mounted-1"])
        told = [event for n in range(2) for event in agent.events(f"mounted-{n}") if event["type"] == "Warning"]
        assert {event["reason"] for event in told} <= {"ErrImageNeverPull", "Failed", "BackOff"}
    finally:
        podman("rmi", "--force", "--ignore", name)


def test_another_volume_needs_another_container(agent: Agent, host: Path) -> None:
    for name in ("before", "after"):
        (host / name).mkdir()
        (host / name / "name").write_text(name)
    sees = mount("data", "/data")
    agent.run(mounting("changing", [host_path("data", host / "before")], sees))
    assert agent.inside("changing", "cat /data/name") == "before"
    sandbox = podman("pod", "ps", "-q", "--filter", "name=changing")
    agent.write(mounting("changing", [host_path("data", host / "after")], sees))
    agent.until(lambda: agent.inside("changing", "cat /data/name") == "after", "it sees the other directory")
    assert podman("pod", "ps", "-q", "--filter", "name=changing") == sandbox


def test_a_volume_that_cannot_be_is_refused_in_words(agent: Agent) -> None:
    agent.write(
        mounting("nfs", [{"name": "data", "nfs": {"server": "s", "path": "/"}}], mount("data", "/data")),
        pod(
            "block",
            container(volumeDevices=[{"name": "data", "devicePath": "/dev/data"}]),
            volumes=[claim("data", "disk")],
        ),
        mounting("huge", [empty_dir("data", medium="HugePages")], mount("data", "/data")),
    )
    agent.until(lambda: len([e for e in agent.events() if e["reason"] == "FailedValidation"]) >= 3, "all are refused")
    told = " ".join(e["message"] for e in agent.events() if e["reason"] == "FailedValidation")
    for words in ("mounting NFS takes root", "spec.containers[0].volumeDevices", "spec.volumes[0].emptyDir.medium"):
        assert words in told


@pytest.mark.slow
def test_what_is_left_of_a_pod_that_went_while_nobody_looked(agent: Agent) -> None:
    agent.run(mounting("leaving", [empty_dir("data"), empty_dir("memory", medium="Memory")], mount("data", "/data"),
                       mount("memory", "/memory")))  # fmt: skip
    agent.inside("leaving", "mkdir -m 700 /data/own; echo x > /data/own/file; busybox chown 77:77 /data/own")
    directory = pod_directory(agent, "leaving")
    kept = directory.with_name("00000000-0000-0000-0000-000000000000")
    agent.stop()
    unshare("cp", "-a", str(directory), str(kept))
    agent.start()
    agent.until(lambda: not kept.exists(), "a directory that no pod has is collected")
    assert directory.exists()
    agent.remove("leaving")
    agent.until_gone(["leaving"])
    agent.until(lambda: not directory.exists(), "and so is that of a pod that nobody wants any more")
