"""subPath and subPathExpr: parts of volumes, made when missing, and never anything outside of the volume."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agent import Agent, restart_count
from tests.e2e.manifests import container, pod
from tests.e2e.volumes import claim, empty_dir, host_path, mount, mounting
from tests.support.podman_service import IMAGE, podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

SECRET = "not for any container"


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the user's that no pod mounts."""
    made = tmp_path_factory.mktemp("outside")
    (made / "secret").write_text(SECRET)
    return made


def test_parts_of_volumes(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_text("a file alone")
    (tmp_path / "link").symlink_to("sub/file")
    disk = f"{agent.instance}-disk"
    volumes = [
        empty_dir("data"),
        empty_dir("memory", medium="Memory"),
        host_path("host", tmp_path),
        claim("disk", disk),
    ]
    sees = container(
        env=[{"name": "WHO", "value": "me-1"}],
        volumeMounts=[
            mount("data", "/all"),
            mount("data", "/part", subPath="deep/down"),
            mount("data", "/mine", subPathExpr="of/$(WHO)"),
            mount("memory", "/memory", subPath="part"),
            mount("host", "/file", subPath="sub/file", readOnly=True),
            mount("host", "/by-link", subPath="link"),
            mount("disk", "/disk", subPath="part"),
        ],
    )
    try:
        agent.run(pod("parts", sees, volumes=volumes))
        script = (
            "echo 1 > /part/file; echo 2 > /mine/file; cat /all/deep/down/file /all/of/me-1/file; cat /file /by-link"
        )
        assert agent.inside("parts", script).split("\n") == ["1", "2", "a file alonea file alone"]
        assert agent.inside("parts", "busybox stat -c %a /all/deep /part; busybox stat -f -c %T /memory").split() == [
            "777",
            "777",
            "tmpfs",
        ]
        assert "Read-only" in agent.inside("parts", "echo x > /file")
        agent.inside("parts", "echo kept > /disk/file")
        place = Path(podman("volume", "inspect", "--format", "{{.Mountpoint}}", disk).strip())
        assert (place / "part" / "file").read_text() == "kept\n"
    finally:
        agent.remove("parts")
        agent.until_gone(["parts"])
        podman("volume", "rm", disk)


def test_a_variable_that_is_missing_keeps_the_container_waiting(agent: Agent) -> None:
    agent.write(mounting("no-variable", [empty_dir("data")], mount("data", "/data", subPathExpr="$(NONE)/x")))
    agent.until(lambda: bool(agent.waiting("no-variable").get("message")), "it waits")
    waits = agent.waiting("no-variable")
    assert (waits["reason"], waits["message"]) == ("CreateContainerConfigError", "missing value for NONE")


@pytest.mark.parametrize(("name", "sub_path"), [("up", "../up"), ("out", "a/../../b"), ("absolute", "/absolute")])
def test_paths_that_lead_out_are_refused(agent: Agent, name: str, sub_path: str) -> None:
    agent.write(mounting(f"leads-{name}", [empty_dir("data")], mount("data", "/data", subPath=sub_path)))
    told = f"leads-{name}.yaml: document 1: spec.containers[0].volumeMounts[0].subPath: "
    agent.until(lambda: any(told in event["message"] for event in agent.events()), "it is refused")
    agent.remove(f"leads-{name}")


@pytest.mark.parametrize(
    "planted",
    [
        "ln -s {outside} /data/x",
        "mkdir /data/in && ln -s {outside} /data/in/x && ln -s in/x /data/x",
        "ln -s / /data/x",
    ],
)
def test_links_that_a_container_has_planted_lead_nowhere(agent: Agent, outside: Path, planted: str) -> None:
    """CVE-2017-1002101's way: an init container leaves a link, and the next one mounts what it leads to."""
    name = f"planted-{len(planted)}"
    plants = container("plant", planted.format(outside=outside).replace("ln", "busybox ln"))
    plants["volumeMounts"] = [mount("data", "/data")]
    victim = container(volumeMounts=[mount("data", "/victim", subPath="x")])
    agent.write(pod(name, victim, initContainers=[plants], volumes=[empty_dir("data")]))
    agent.until(lambda: agent.waiting(name).get("reason") == "CreateContainerConfigError", "it is refused")
    words = 'failed to prepare subPath for volumeMount "data" of container "main"'
    assert agent.waiting(name)["message"].startswith(words)
    agent.remove(name)


def test_a_sub_path_is_looked_up_at_each_start(agent: Agent) -> None:
    """Another directory of that name is there by then."""
    observation_requests = container(
        "looks",
        "cat /part/file >> /all/seen; busybox rm -rf /all/part; mkdir /all/part; echo second > /all/part/file; exit 1",
        volumeMounts=[mount("data", "/all"), mount("data", "/part", subPath="part")],
    )
    first = container("first", "mkdir /all/part; echo first > /all/part/file")
    first["volumeMounts"] = [mount("data", "/all")]
    stays = container(volumeMounts=[mount("data", "/all")])
    agent.write(pod("again", observation_requests, stays, initContainers=[first], volumes=[empty_dir("data")]))
    agent.until(lambda: restart_count(agent.pods().get("again", {"status": {}}), "looks") >= 1, "it runs again")
    agent.until(lambda: agent.inside("again", "cat /all/seen").split()[:2] == ["first", "second"], "it saw both")


def test_parts_of_an_image(agent: Agent) -> None:
    volumes = [{"name": "image", "image": {"reference": IMAGE, "pullPolicy": "Never"}}]
    mounts = [
        mount("image", "/tools", subPath="bin"),
        mount("image", "/one/busybox", subPath="bin/busybox"),
        mount("image", "/all"),
    ]
    agent.run(mounting("image-parts", volumes, *mounts))
    same = "busybox cmp /tools/busybox /all/bin/busybox && /one/busybox echo they run"
    assert agent.inside("image-parts", f"{same}; ls /tools/cat") == "they run\n/tools/cat"
    for place in ("/tools/new", "/one/busybox"):
        assert "Read-only file system" in agent.inside("image-parts", f"echo x > {place}")
    missing = container(volumeMounts=[mount("image", "/none", subPath="no/such")])
    agent.write(pod("image-none", missing, volumes=volumes))
    agent.until(lambda: agent.waiting("image-none").get("reason") == "ImageVolumeMountFailed", "it waits")
    assert "no/such: No such file or directory" in agent.waiting("image-none")["message"]
