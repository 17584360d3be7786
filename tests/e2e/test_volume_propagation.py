"""mountPropagation and recursiveReadOnly: mounts below a volume, in a container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, container_status
from tests.e2e.manifests import container, pod
from tests.e2e.volumes import host_path, mount, mounting, unshare

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A directory that is a shared mount in Podman's mount namespace, with another mount below it."""
    (tmp_path / "below").mkdir()
    (tmp_path / "later").mkdir()
    place = str(tmp_path)
    unshare(
        "sh", "-c", f"mount --bind {place} {place} && mount --make-shared {place} && mount -t tmpfs t {place}/below"
    )
    yield tmp_path
    unshare("umount", "-R", "-l", place)


def test_a_mount_reaches_those_that_want_it(agent: Agent, shared: Path) -> None:
    names = {"none": "None", "unset": None, "from-host": "HostToContainer"}
    agent.run(
        *(
            mounting(
                name,
                [host_path("data", shared)],
                mount("data", "/data", **({"mountPropagation": propagation} if propagation else {})),
            )
            for name, propagation in names.items()
        )
    )
    unshare("mount", "-t", "tmpfs", "t", str(shared / "later"))
    unshare("touch", str(shared / "later" / "file"))
    assert {name: agent.inside(name, "ls /data/later") for name in names} == {
        "none": "",
        "unset": "",
        "from-host": "file",
    }


def test_a_mount_of_a_privileged_container_reaches_others(agent: Agent, shared: Path) -> None:
    both = mount("data", "/data", mountPropagation="Bidirectional")
    mounts = container(volumeMounts=[both], securityContext={"privileged": True})
    gets = container("gets", volumeMounts=[mount("data", "/data", mountPropagation="HostToContainer")])
    agent.run(pod("both-ways", mounts, gets, volumes=[host_path("data", shared)]))
    made = agent.inside("both-ways", "busybox mount -t tmpfs t /data/later && touch /data/later/file && echo made")
    assert made == "made"
    assert agent.inside("both-ways", "ls /data/later", "gets") == "file"
    assert unshare("ls", str(shared / "later")) == "file\n"


@pytest.mark.slow
def test_read_only_to_the_last_mount(agent: Agent, shared: Path) -> None:
    modes = ("Disabled", "IfPossible", "Enabled")
    mounts = [mount("data", f"/{mode}", readOnly=True, recursiveReadOnly=mode) for mode in modes]
    agent.run(mounting("recursive", [host_path("data", shared)], *mounts))
    for mode in modes:
        assert "Read-only" in agent.inside("recursive", f"echo x > /{mode}/file")
    says = {mode: agent.inside("recursive", f"echo x > /{mode}/below/file") for mode in modes}
    assert says["Disabled"] == ""
    assert "Read-only" in says["IfPossible"]
    assert "Read-only" in says["Enabled"]
    assert unshare("cat", str(shared / "below" / "file")) == "x\n"
    told = container_status(agent.pods()["recursive"])["volumeMounts"]
    assert [one["recursiveReadOnly"] for one in told] == ["Disabled", "Enabled", "Enabled"]
