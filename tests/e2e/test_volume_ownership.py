"""fsGroup: to whom volumes belong, as containers see it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, restart_count
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.volumes import claim, empty_dir, host_path, mount, mounting, pod_directory, unshare
from tests.support.podman_service import IMAGE, podman, remove_by_force
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

GROUP = 2000
NUMBERS = itertools.count()


@pytest.fixture
def disk(agent: Agent) -> Iterator[str]:
    """A volume of Podman's with something in it, and a link that leads out of it."""
    name = f"{agent.instance}-owned-{next(NUMBERS)}"
    podman("volume", "create", "--opt", "o=uid=0", name)
    place = podman("volume", "inspect", "--format", "{{.Mountpoint}}", name).strip()
    unshare(
        "sh", "-c", f"mkdir {place}/in; echo x > {place}/in/file; chmod 600 {place}/in/file; ln -s /etc {place}/link"
    )
    yield name
    remove_by_force("volume", name)


def test_volumes_belong_to_the_group(agent: Agent, disk: str) -> None:
    sees = [
        mount("data", "/data"),
        mount("memory", "/memory"),
        mount("disk", "/disk"),
        mount("new", "/new"),
        mount("written", "/written"),
    ]
    new = f"{disk}-new"
    written = {"items": [{"path": "name", "mode": 0o400, "fieldRef": {"fieldPath": "metadata.name"}}]}
    volumes = [
        empty_dir("data"),
        empty_dir("memory", medium="Memory"),
        claim("disk", disk),
        claim("new", new),
        {"name": "written", "downwardAPI": written},
    ]
    once = f"if busybox test -e /data/once; then {STAY}; fi; mkdir /data/once; busybox chgrp 0 /data; exit 1"
    agent.write(
        pod(
            "owned",
            container(volumeMounts=sees),
            container("again", once, volumeMounts=sees),
            volumes=volumes,
            securityContext={"fsGroup": GROUP},
        )
    )
    agent.until_running(["owned"])
    agent.until(lambda: restart_count(agent.pods()["owned"], "again") == 1, "it runs a second time")
    says = agent.inside(
        "owned",
        "busybox stat -L -c '%n %g %a' /written/name /memory /new /disk /disk/in /disk/in/file /data/once",
    )
    assert says.split("\n") == [
        f"/written/name {GROUP} 440",
        f"/memory {GROUP} 3777",
        f"/new {GROUP} 2775",
        f"/disk {GROUP} 2775",
        f"/disk/in {GROUP} 2775",
        f"/disk/in/file {GROUP} 660",
        f"/data/once {GROUP} 2755",
    ]
    assert agent.inside("owned", "busybox stat -c %g /data") == "0", "what a container has changed stays changed"
    agent.remove("owned")
    agent.until_gone(["owned"])
    podman("volume", "rm", new)


def test_a_claim_is_changed_by_policy(agent: Agent, disk: str) -> None:
    place = podman("volume", "inspect", "--format", "{{.Mountpoint}}", disk).strip()
    unshare("sh", "-c", f"chgrp {GROUP} {place}; chmod 2775 {place}")
    for name, policy, group in (("by-root", "OnRootMismatch", 0), ("always", "Always", GROUP)):
        context = {"fsGroup": GROUP, "fsGroupChangePolicy": policy}
        agent.run(mounting(name, [claim("disk", disk)], mount("disk", "/disk"), securityContext=context))
        assert agent.inside(name, "busybox stat -c %g /disk/in/file") == str(group)
        agent.remove(name)
        agent.until_gone([name])


def test_a_group_that_is_not_mapped_keeps_the_pod_waiting(agent: Agent) -> None:
    agent.write(mounting("far", [empty_dir("data")], mount("data", "/data"), securityContext={"fsGroup": 4_000_000}))
    agent.until(lambda: bool(agent.messages("far", "FailedMount")), "it waits for its volume")
    (words, *_) = agent.messages("far", "FailedMount")
    assert words.startswith('MountVolume.SetUp failed for volume "data" : applyFSGroup failed for vol data: ')
    assert "Invalid argument" in words
    agent.remove("far")


def test_a_host_path_stays_the_users(agent: Agent) -> None:
    agent.run(
        mounting(
            "users",
            [host_path("data", agent.directory / "manifests"), empty_dir("own")],
            mount("data", "/data"),
            mount("own", "/own"),
            securityContext={"fsGroup": GROUP},
        )
    )
    assert agent.inside("users", "busybox stat -c %g /data /own").split() == ["0", str(GROUP)]
    directory = pod_directory(agent, "users")
    agent.remove("users")
    agent.until_gone(["users"])
    agent.until(lambda: not directory.exists(), "its directory is gone")


@pytest.fixture
def new_claim(agent: Agent) -> Iterator[str]:
    """Name of a volume that is not there."""
    name = f"{agent.instance}-new-{next(NUMBERS)}"
    yield name
    remove_by_force("volume", name)


@pytest.fixture
def built(agent: Agent, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Builds an image out of lines for the test image; it has the user app, 1234, of the group staff, 50."""
    names: list[str] = []
    (tmp_path / "passwd").write_text("root:x:0:0::/:/bin/sh\napp:x:1234:77::/:/bin/sh\n")
    (tmp_path / "group").write_text("root:x:0:\nstaff:x:50:\n")
    (tmp_path / "tree" / "v").mkdir(parents=True)
    (tmp_path / "tree" / "v").chmod(0o1775)

    def build(lines: str) -> str:
        names.append(f"localhost/{agent.instance}-owner-{next(NUMBERS)}:1")
        (tmp_path / "Containerfile").write_text(f"FROM {IMAGE}\nCOPY passwd group /etc/\n{lines}\n")
        podman("build", "--quiet", "--pull=never", "--tag", names[-1], str(tmp_path))
        return names[-1]

    yield build
    for name in names:
        podman("image", "rm", "--force", name)


def owner(volume: str) -> str:
    """User, group and mode of the volume's root, as containers see it."""
    place = podman("volume", "inspect", "--format", "{{.Mountpoint}}", volume).strip()
    return unshare("stat", "-c", "%u:%g %a", place).strip()


def test_an_empty_claim_stays_with_its_first_user(agent: Agent, new_claim: str) -> None:
    def user(name: str, uid: int) -> None:
        volumes, context = [claim("v", new_claim)], {"runAsUser": uid}
        agent.run(pod(name, container(volumeMounts=[mount("v", "/v")]), volumes=volumes, securityContext=context))

    user("first", 1000)
    assert owner(new_claim) == "1000:0 755"
    user("second", 2000)
    user("third", 0)
    assert owner(new_claim) == "1000:0 755"
    assert agent.inside("first", "mkdir /v/mine && echo made") == "made"
    agent.remove("first", "second", "third")
    agent.until_gone(["first", "second", "third"])


def test_an_empty_claim_of_root_stays_roots(agent: Agent, new_claim: str) -> None:
    sees = [mount("v", "/v")]
    one = container("root", volumeMounts=sees)
    other = container("other", volumeMounts=sees, securityContext={"runAsUser": 1000})
    agent.run(pod("both", one, other, volumes=[claim("v", new_claim)]))
    assert owner(new_claim) == "0:0 755"
    agent.remove("both")
    agent.until_gone(["both"])


@pytest.mark.parametrize(
    ("lines", "whose"),
    [
        seldom("USER app", "1234:77 755"),
        ("USER app:staff", "1234:50 755"),
        seldom("USER 4000", "4000:0 755"),
        ("COPY --chown=999:998 tree /", "999:998 1775"),
    ],
)
def test_the_image_says_whose_a_new_claim_is(
    agent: Agent, new_claim: str, built: Callable[[str], str], lines: str, whose: str
) -> None:
    of_image = container(image=built(lines), volumeMounts=[mount("v", "/v")])
    agent.run(pod("of-image", of_image, volumes=[claim("v", new_claim)]))
    assert owner(new_claim) == whose
    agent.remove("of-image")
    agent.until_gone(["of-image"])


def test_a_claim_with_something_in_it_is_not_touched(agent: Agent, disk: str) -> None:
    before = owner(disk)
    agent.run(mounting("later", [claim("v", disk)], mount("v", "/v"), securityContext={"runAsUser": 1000}))
    assert owner(disk) == before
    agent.remove("later")
    agent.until_gone(["later"])


def test_a_user_that_the_image_does_not_have_leaves_no_volume(
    agent: Agent, new_claim: str, built: Callable[[str], str]
) -> None:
    of_image = container(image=built("USER nobody-knows"), volumeMounts=[mount("v", "/v")])
    agent.write(pod("unknown", of_image, volumes=[claim("v", new_claim)]))
    agent.until(lambda: "unable to find user nobody-knows" in agent.reasons("unknown").get("Failed", ""), "it is told")
    assert new_claim not in podman("volume", "ls", "--format", "{{.Name}}").split()
    agent.remove("unknown")
    agent.until_gone(["unknown"])
