"""As whom and with what rights containers run: each says itself what it has been given."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.agent import Agent, Json, container_status, is_ready
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, config_map, container, pod
from tests.support.podman_service import IMAGE, PodmanService, podman
from tests.support.servers.local_servers import unused_port
from tests.support.variants import seldom
from workers.podman_files.seccomp_filters import ANNOTATION, FILTER_FILE

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

MESSAGE: Final = "/dev/termination-log"
STATUS: Final = f"busybox grep -E '^(Uid|Gid|Groups|CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status > {MESSAGE}"
NET_RAW: Final = 1 << 13
NET_BIND_SERVICE: Final = 1 << 10
CHOWN: Final = 1
FILTER: Final = "2"
"""A seccomp filter, in /proc/PID/status; 0 is none."""
NO_MKDIR: Final = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}],
}
SYSCTLS: Final = {
    "net.ipv4.ip_unprivileged_port_start": "80",
    "net/ipv4/tcp_syncookies": "0",
    "kernel.shm_rmid_forced": "1",
    "kernel.msgmax": "65537",
}
READ_SYSCTLS: Final = (
    "cd /proc/sys; cat net/ipv4/ip_unprivileged_port_start net/ipv4/tcp_syncookies kernel/shm_rmid_forced kernel/msgmax"
)
TRY_TO_WRITE: Final = """
for file in /root-file /etc/file /dev/shm/file; do
    if (: > $file) 2> /dev/null; then echo $file; fi
done"""
TOUCH_THE_KERNEL: Final = (
    "for i in 1; do (echo 1 > /proc/sys/kernel/shm_rmid_forced) 2> /dev/null && echo written; done"
)

SEE_THE_KERNEL: Final = "busybox grep -q : /proc/interrupts && echo seen"


def says(name: str, script: str = STATUS, **context: Any) -> Json:
    """A container that leaves what the script says as its last message."""
    return container(name, script if MESSAGE in script else f"({script}) > {MESSAGE}", securityContext=context)


def once(name: str, *containers: Json, of_pod: Json | None = None, **spec: Any) -> Json:
    """A pod of containers that end."""
    return pod(name, *containers, restartPolicy="Never", securityContext=of_pod or {}, **spec)


def saying(name: str, script: str = STATUS, of_pod: Json | None = None, **context: Any) -> Json:
    """A pod of one container that ends, which has the pod's name."""
    return once(name, says(name, script, **context), of_pod=of_pod)


def seccomp(type: str) -> Json:
    name = {"localhostProfile": "fine/no-mkdir.json"} if type == "Localhost" else {}
    return {"seccompProfile": {"type": type, **name}}


OF_POD: Final = {"runAsUser": 1000, "runAsGroup": 2000, "supplementalGroups": [3000, 4000]}
MKDIR: Final = "mkdir /some && echo made || echo refused"
PODS: Final = (
    once(
        "none",
        says("plain"),
        says("user-alone", runAsUser=1000),
        says("group-alone", runAsGroup=2000),
        says("adds", capabilities={"add": ["NET_RAW"], "drop": ["CHOWN"]}),
        says("drops-all", capabilities={"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}),
        says("adds-all", runAsUser=1000, capabilities={"add": ["ALL"], "drop": ["NET_RAW"]}),
        says("privileged", f"{STATUS}; {TOUCH_THE_KERNEL} >> {MESSAGE}; ls /dev >> {MESSAGE}", privileged=True),
        says("not-privileged", f"{TOUCH_THE_KERNEL}; ls /dev"),
        says("no-new-privileges", allowPrivilegeEscalation=False),
        says("read-only", TRY_TO_WRITE, readOnlyRootFilesystem=True),
        says("writable", TRY_TO_WRITE),
        says("apparmor-unconfined", "echo runs", appArmorProfile={"type": "Unconfined"}),
    ),
    once("ids", says("of-pod"), says("of-container", runAsUser=1001, runAsGroup=2001), of_pod=OF_POD),
    once(
        "unconfined",
        says("unconfined-by-pod"),
        says("confined", **seccomp("RuntimeDefault")),
        says("no-mkdir", MKDIR, **seccomp("Localhost")),
        of_pod=seccomp("Unconfined"),
    ),
    once(
        "local",
        says("no-mkdir-by-pod", MKDIR),
        says("mkdir", MKDIR, **seccomp("RuntimeDefault")),
        says("unconfined-itself", **seccomp("Unconfined")),
        of_pod=seccomp("Localhost"),
    ),
    once(
        "sysctls",
        says("read-sysctls", READ_SYSCTLS),
        of_pod={"sysctls": [{"name": name, "value": value} for name, value in SYSCTLS.items()]},
    ),
)
POD_OF: Final = {one["name"]: made["metadata"]["name"] for made in PODS for one in made["spec"]["containers"]}


USERS: Final = {
    "passwd": "root:x:0:0:root:/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n",
    "group": "root:x:0:\nalice:x:1000:\nteam:x:5000:alice\n",
}


@pytest.fixture(scope="module")
def images(podman_service: PodmanService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The test image with another USER, by that; in all of them alice is in a team."""
    made = podman("create", IMAGE, "true").strip()
    directory = tmp_path_factory.mktemp("users")
    for name, content in USERS.items():
        (directory / name).write_text(content)
        podman("cp", str(directory / name), f"{made}:/etc/{name}")
    names = {user: f"localhost/{podman_service.run_name}-{user}:1" for user in ("alice", "1000")}
    for user, name in names.items():
        podman("commit", "--quiet", "--change", f"USER={user}", made, name)
    podman("rm", made)
    yield names
    podman("rmi", "--force", *names.values())


@pytest.fixture(scope="module")
def agent(images: dict[str, str], new_shared_agent: NewAgent) -> Agent:
    shared = new_shared_agent(allowedUnsafeSysctls=["kernel.msg*"])
    profile = shared.state / "seccomp" / "fine" / "no-mkdir.json"
    profile.parent.mkdir(parents=True)
    profile.write_text(json.dumps(NO_MKDIR))
    shared.start()
    shared.write(*PODS)
    return shared


def crash_trace(agent: Agent, of: str, name: str = "") -> str:
    """Trace that the container ``of`` that pod has left when it ended."""
    name = name or POD_OF.get(of, of)
    found: list[str] = []

    def has_ended() -> bool:
        status = container_status(agent.pods()[name], of) if name in agent.pods() else {}
        ended = status.get("state", {}).get("terminated")
        found[:] = [ended.get("message", "")] if ended else []
        return bool(found)

    agent.until(has_ended, f"{of} of {name} has ended")
    return found[0]


def told(agent: Agent, of: str, name: str = "") -> dict[str, list[str]]:
    """Lines of /proc/PID/status by their names."""
    lines = (line.partition(":") for line in crash_trace(agent, of, name).splitlines())
    return {key: value.split() for key, colon, value in lines if colon}


def capabilities(agent: Agent, name: str) -> tuple[int, int]:
    """Effective ones, and those that there can be."""
    said = told(agent, name)
    return int(said["CapEff"][0], 16), int(said["CapBnd"][0], 16)


def ids(said: dict[str, list[str]]) -> tuple[str, str, list[str]]:
    return said["Uid"][0], said["Gid"][0], sorted(said["Groups"])


# --- users and groups ---


def test_user_and_groups_of_the_pod(agent: Agent) -> None:
    assert ids(told(agent, "plain"))[:2] == ("0", "0")
    assert ids(told(agent, "of-pod")) == ("1000", "2000", ["2000", "3000", "4000"])
    assert ids(told(agent, "user-alone")) == ("1000", "0", ["0"])


def test_the_status_says_as_whom_a_container_was_begun(agent: Agent) -> None:
    crash_trace(agent, "of-pod")
    user = container_status(agent.pods()["ids"], "of-pod")["user"]["linux"]
    assert (user["uid"], user["gid"], sorted(user["supplementalGroups"])) == (1000, 2000, [2000, 3000, 4000])


def test_user_and_group_of_the_container_count_before_the_pods(agent: Agent) -> None:
    assert ids(told(agent, "of-container")) == ("1001", "2001", ["2001", "3000", "4000"])
    assert ids(told(agent, "group-alone"))[:2] == ("0", "2000"), "the user is the image's"


def of_image(manifest: Json, image: str) -> Json:
    manifest["spec"]["containers"][0]["image"] = image
    return manifest


def test_the_groups_that_the_image_has_for_a_user(agent: Agent, images: dict[str, str]) -> None:
    strict = {"supplementalGroups": [3000], "supplementalGroupsPolicy": "Strict"}
    merge = {"supplementalGroups": [3000], "supplementalGroupsPolicy": "Merge"}
    agent.write(
        of_image(saying("merged", of_pod=merge), images["alice"]),
        of_image(saying("strict", of_pod={**strict, "runAsUser": 1000, "runAsGroup": 1000}), images["alice"]),
        of_image(saying("strict-of-image", of_pod=strict), images["alice"]),
    )
    assert ids(told(agent, "merged")) == ("1000", "1000", ["1000", "3000", "5000"])
    assert ids(told(agent, "strict")) == ("1000", "1000", ["1000", "3000"])
    assert "runAsGroup is not set" in until_waiting(agent, "strict-of-image")


IDS: Final = "busybox id -u; busybox id -g; busybox id -G"


@pytest.mark.parametrize(
    ("of_pod", "of_container", "expected"),
    [
        seldom({}, {"runAsUser": 2000}, "2000 0 0"),
        seldom({"supplementalGroups": [4000], "fsGroup": 3000}, {"runAsUser": 2000}, "2000 0 0 3000 4000"),
        seldom({"runAsUser": 2000, "runAsGroup": 2001}, {}, "2000 2001 2001"),
        ({"runAsUser": 2000, "runAsGroup": 2001, "supplementalGroups": [4000]}, {}, "2000 2001 2001 4000"),
    ],
    ids=["a user", "a user with groups", "a user and a group", "a user and a group with groups"],
)
def test_commands_have_the_containers_groups(
    agent: Agent, request: pytest.FixtureRequest, of_pod: Json, of_container: Json, expected: str
) -> None:
    """The container's own process, a command of a client (through Podman's service) and a probe's (direct)."""
    name = request.node.callspec.id.replace(" ", "-")
    probe = {
        "exec": {"command": ["sh", "-c", f"({IDS}) > /tmp/new; busybox mv /tmp/new /tmp/probe"]},
        "periodSeconds": 1,
    }
    main = container("main", f"({IDS}) > /tmp/own; {STAY}", securityContext=of_container, readinessProbe=probe)
    main["volumeMounts"] = [{"name": "tmp", "mountPath": "/tmp"}]
    agent.run(pod(name, main, securityContext=of_pod, volumes=[{"name": "tmp", "emptyDir": {}}]))
    own, probed, asked = (
        agent.cli("exec", name, "--", "sh", "-c", command).out.split()
        for command in ("cat /tmp/own", "cat /tmp/probe", IDS)
    )
    assert own[:3] + sorted(own[3:]) == expected.split()
    assert [sorted(own), sorted(own)] == [sorted(probed), sorted(asked)]
    agent.remove(name)


def until_waiting(agent: Agent, name: str) -> str:
    """Why its container is not created, once it is not."""
    found: list[str] = []

    def waits() -> bool:
        waiting = agent.waiting(name, name)
        found[:] = [waiting["message"]] if waiting.get("reason") == "CreateContainerConfigError" else []
        return bool(found)

    agent.until(waits, f"{name} waits with a wrong configuration")
    return found[0]


def test_root_is_refused_where_it_may_not_be(agent: Agent, images: dict[str, str]) -> None:
    non_root: Json = {"runAsNonRoot": True}
    refused = {
        "root-by-number": (saying("root-by-number", of_pod=non_root, runAsUser=0), "runAsUser breaks non-root policy"),
        "root-of-image": (saying("root-of-image", **non_root), "image will run as root"),
        "user-by-name": (
            of_image(saying("user-by-name", of_pod=non_root), images["alice"]),
            "non-numeric user (alice)",
        ),
    }
    admitted = {
        "user-of-image": of_image(saying("user-of-image", of_pod=non_root), images["1000"]),
        "root-allowed": saying("root-allowed", of_pod=non_root, runAsNonRoot=False),
    }
    agent.write(*(manifest for manifest, _ in refused.values()), *admitted.values())
    for name, (_, words) in refused.items():
        message = until_waiting(agent, name)
        uid = agent.pods()[name]["metadata"]["uid"]
        assert words in message
        assert message.endswith(f'(pod: "{name}_default({uid})", container: {name})')
        assert agent.reasons(name)["Failed"] == f"Error: {message}"
        assert not agent.eye.containers(name)
    assert [ids(told(agent, name))[0] for name in admitted] == ["1000", "0"]


def test_an_id_that_rootless_containers_do_not_have_is_named(agent: Agent) -> None:
    agent.write(
        saying("high-user", runAsUser=2_000_000), saying("high-group", of_pod={"supplementalGroups": [2_000_000]})
    )
    assert "runAsUser 2000000: there is no such user in a rootless container" in until_waiting(agent, "high-user")
    assert "supplementalGroups 2000000: there is no such group" in until_waiting(agent, "high-group")


# --- rights ---


def test_capabilities_are_added_and_dropped(agent: Agent) -> None:
    default, _ = capabilities(agent, "plain")
    assert default & (CHOWN | NET_RAW) == CHOWN
    effective, bounding = capabilities(agent, "adds")
    assert effective == bounding == (default | NET_RAW) & ~CHOWN
    assert capabilities(agent, "drops-all") == (NET_BIND_SERVICE, NET_BIND_SERVICE)
    effective, bounding = capabilities(agent, "adds-all")
    assert effective == bounding
    assert bounding & default == default
    assert bounding & NET_RAW == 0


def test_privileged_is_what_a_rootless_host_can_give(agent: Agent) -> None:
    effective, bounding = capabilities(agent, "privileged")
    assert effective == bounding
    assert effective & effective + 1 == 0, "every capability from the first to the last"
    assert told(agent, "privileged")["Seccomp"] == ["0"]
    words, plain = crash_trace(agent, "privileged").split(), crash_trace(agent, "not-privileged").split()
    assert "written" in words
    assert "written" not in plain
    assert set(plain) < set(words), "the host's devices are there"


def test_privileges_are_not_gained(agent: Agent) -> None:
    assert told(agent, "plain")["NoNewPrivs"] == ["0"]
    assert told(agent, "no-new-privileges")["NoNewPrivs"] == ["1"]


def test_a_read_only_root(agent: Agent) -> None:
    assert crash_trace(agent, "writable").split() == ["/root-file", "/etc/file", "/dev/shm/file"]
    assert set(crash_trace(agent, "read-only").split()) <= {"/dev/shm/file"}


# --- profiles ---


def test_seccomp_profiles_of_the_pod(agent: Agent) -> None:
    assert told(agent, "plain")["Seccomp"] == [FILTER], "by default"
    assert told(agent, "unconfined-by-pod")["Seccomp"] == ["0"]
    assert crash_trace(agent, "no-mkdir-by-pod").split() == ["refused"]


def test_seccomp_profiles_of_the_container_count_before_the_pods(agent: Agent) -> None:
    assert told(agent, "confined")["Seccomp"] == [FILTER]
    assert told(agent, "unconfined-itself")["Seccomp"] == ["0"]
    assert crash_trace(agent, "no-mkdir").split() == ["refused"]
    assert crash_trace(agent, "mkdir").split() == ["made"]


def test_the_default_seccomp_profile_is_the_nodes_choice(new_agent: NewAgent) -> None:
    agent = new_agent(seccompDefault=False)
    agent.start()
    agent.write(saying("by-default"), saying("asked-for", of_pod={"seccompProfile": {"type": "RuntimeDefault"}}))
    assert told(agent, "by-default")["Seccomp"] == ["0"]
    assert told(agent, "asked-for")["Seccomp"] == [FILTER]


@pytest.mark.slow
def test_a_filter_is_compiled_once_where_crun_keeps_none(new_agent: NewAgent) -> None:
    """The next containers of the same kind are given it, and have the same. The first may be made before its image is
    known for certain."""
    agent, filters, annotations = new_agent(workers={"count": 1}), [], []
    agent.start()
    for name in ("first", "second", "third"):
        agent.write(pod(name, container(name, STAY)))
        until_ready(agent, name)
        id = container_status(agent.pods()[name], name)["containerID"].rpartition("/")[2]
        filters.append(Path(os.environ["XDG_RUNTIME_DIR"], "crun", id, FILTER_FILE))
        annotations.append(podman("inspect", "--format", "{{json .Config.Annotations}}", id))
    if not filters[0].exists() or filters[0].stat().st_nlink > 1:
        pytest.skip("another runtime, or one with a cache of its own")
    assert (ANNOTATION in annotations[0], ANNOTATION in annotations[-1]) == (False, True)
    assert filters[0].read_bytes() == filters[-1].read_bytes()


def test_a_profile_that_is_not_there_is_told(agent: Agent) -> None:
    name = "no-such-profile"
    agent.write(saying(name, seccompProfile={"type": "Localhost", "localhostProfile": "no-such.json"}))
    agent.until(lambda: "Failed" in agent.reasons(name), "its create has failed")
    assert f"{agent.state}/seccomp/no-such.json: no such file or directory" in agent.reasons(name)["Failed"]
    assert container_status(agent.pods()[name], name)["state"]["waiting"]["reason"] == "CreateContainerError"


def until_ready(agent: Agent, name: str) -> None:
    agent.until(lambda: name in agent.pods() and is_ready(agent.pods()[name]), f"{name} is ready")


def until_rejected(agent: Agent, name: str) -> tuple[str, str]:
    """Reason and message of a pod that was not admitted."""
    agent.until(lambda: agent.pods().get(name, {}).get("status", {}).get("phase") == "Failed", f"{name} has failed")
    status = agent.pods()[name]["status"]
    return status["reason"], status["message"]


def test_apparmor_profiles_are_rejected(agent: Agent) -> None:
    runtime_default: Json = {"appArmorProfile": {"type": "RuntimeDefault"}}
    annotated = saying("apparmor-annotated", "true")
    annotated["metadata"]["annotations"] = {"container.apparmor.security.beta.kubernetes.io/any": "runtime/default"}
    pods = (saying("apparmor-of-pod", of_pod=runtime_default), saying("apparmor", **runtime_default), annotated)
    agent.write(*pods)
    for manifest in pods:
        reason, message = until_rejected(agent, manifest["metadata"]["name"])
        assert reason == "AppArmor"
        assert "Cannot enforce AppArmor: " in message
    assert crash_trace(agent, "apparmor-unconfined").split() == ["runs"]


# --- kernel parameters ---


def test_sysctls_are_set_on_the_sandbox(agent: Agent) -> None:
    assert crash_trace(agent, "read-sysctls").split() == list(SYSCTLS.values())


def test_other_sysctls_are_forbidden(agent: Agent) -> None:
    agent.write(saying("swappy", of_pod={"sysctls": [{"name": "vm.swappiness", "value": "1"}]}))
    message = 'forbidden sysctl: "vm.swappiness" not allowlisted'
    assert until_rejected(agent, "swappy") == ("SysctlForbidden", f"Pod was rejected: {message}")


# --- a user namespace for a pod ---


MAP: Final = f"busybox awk '{{print $1, $2, $3}}' /proc/self/uid_map > {MESSAGE}"
OWN_IDS: Final = once(
    "own-a",
    says("first", MAP),
    says("second", f"{MAP}; ({SEE_THE_KERNEL}; {TOUCH_THE_KERNEL}) >> {MESSAGE}", procMount="Unmasked"),
    says("third", f"{SEE_THE_KERNEL}; {TOUCH_THE_KERNEL}", procMount="Default"),
    hostUsers=False,
)


def test_pods_with_ids_of_their_own(agent: Agent) -> None:
    high = says("main", MAP, runAsUser=3000)
    agent.write(
        OWN_IDS,
        once("own-b", high, hostUsers=False),
        once("shared", says("main", MAP), hostUsers=True),
    )
    (first, *_), (again, *_) = (ranges(agent, "own-a", name) for name in ("first", "second"))
    (other,) = ranges(agent, "own-b", "main")
    assert first == again, "of one pod"
    assert (first[0], first[2]) == (0, 2048)
    assert other[2] == 3001, "as far as the pod names ids"
    taken = [range(start, start + count) for _, start, count in (first, other)]
    assert not set(taken[0]) & set(taken[1])
    assert ranges(agent, "shared", "main")[0] != first


@pytest.mark.parametrize(
    ("value", "uid", "gid"), [("keep-id", os.getuid(), os.getgid()), ("keep-id:uid=200,gid=210", 200, 210)]
)
def test_the_agents_user_keeps_their_id_where_podmans_annotation_asks_for_it(
    agent: Agent, tmp_path: Path, value: str, uid: int, gid: int
) -> None:
    """A file of the user's is the user's inside, and what the container writes is the user's outside."""
    (tmp_path / "mine").touch()
    name = f"keeps-{uid}"
    mounts = [{"name": volume, "mountPath": f"/{volume}"} for volume in ("home", "scratch", "settings")]
    shows = "id -u; id -g; busybox stat -c %u:%g /home/mine; touch /home/written /scratch/written && cat /settings/key"
    volumes = [
        {"name": "home", "hostPath": {"path": str(tmp_path)}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "kept"}},
    ]
    made = once(name, {**says("main", f"({shows}) > {MESSAGE}"), "volumeMounts": mounts}, volumes=volumes)
    made["metadata"]["annotations"] = {"io.podman.annotations.userns": value}
    agent.write(config_map("kept", key="value"), made)
    assert crash_trace(agent, "main", name).split() == [str(uid), str(gid), f"{uid}:{gid}", "value"]
    written = (tmp_path / "written").stat()
    assert (written.st_uid, written.st_gid) == (os.getuid(), os.getgid())
    agent.remove(name, "kept")  # it has all ids: none are left for pods with ids of their own
    agent.until_gone([name])


def test_a_pod_with_more_ids_than_there_are_says_so_and_goes(agent: Agent) -> None:
    agent.write(once("too-high", says("too-high", runAsUser=2_000_000), hostUsers=False))
    agent.until(lambda: "FailedCreatePodSandBox" in agent.reasons("too-high"), "its sandbox is not made")
    assert re.search("enough (available|unused) IDs", agent.reasons("too-high")["FailedCreatePodSandBox"])
    agent.remove("too-high")
    agent.until_gone(["too-high"])


def ranges(agent: Agent, name: str, of: str) -> list[tuple[int, ...]]:
    """Lines of /proc/PID/uid_map."""
    lines = (line.split() for line in crash_trace(agent, of, name).splitlines())
    return [tuple(map(int, words)) for words in lines if len(words) == 3]


def test_proc_is_unmasked_only_where_it_was_asked_for(agent: Agent) -> None:
    agent.write(OWN_IDS)
    assert crash_trace(agent, "second", "own-a").split()[-2:] == ["seen", "written"]
    assert crash_trace(agent, "third", "own-a") == ""


SERVE: Final = "mkdir /tmp; echo hello > /tmp/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & wait $!"


def test_a_pod_with_ids_of_its_own_is_probed_published_and_stopped(agent: Agent) -> None:
    port = unused_port()
    main = container(
        script=SERVE,
        ports=[{"containerPort": 8080, "hostPort": port, "hostIP": "127.0.0.1"}],
        readinessProbe={"httpGet": {"port": 8080}, "periodSeconds": 1, "timeoutSeconds": 10},
        startupProbe={"exec": {"command": ["sh", "-c", "test $(id -u) = 0"]}, "periodSeconds": 1, "timeoutSeconds": 10},
    )
    debug = says("debug", "ps -o args", runAsUser=1000) | {"targetContainerName": "main"}
    agent.run(pod("own-server", main, hostUsers=False, ephemeralContainers=[debug]))
    assert "httpd" in crash_trace(agent, "debug", "own-server")
    fetched = subprocess.run(
        ["busybox", "wget", "-q", "-O", "-", f"http://127.0.0.1:{port}/"],
        capture_output=True,
        timeout=20,
        check=True,
    )
    assert fetched.stdout == b"hello\n"
    agent.remove("own-server")
    agent.until_gone(["own-server"])


# --- containers of other kinds, and commands in containers ---


def test_init_and_ephemeral_containers_have_contexts_too(agent: Agent) -> None:
    init = says("init", runAsUser=7, capabilities={"drop": ["ALL"]})
    debug = says("debug", allowPrivilegeEscalation=False)
    shared = {"runAsUser": 1000, "runAsGroup": 2000}
    agent.run(pod("kinds", container(), initContainers=[init], ephemeralContainers=[debug], securityContext=shared))
    said, debugged = told(agent, "init", "kinds"), told(agent, "debug", "kinds")
    assert (ids(said)[:2], said["CapBnd"]) == (("7", "2000"), ["0" * 16])
    assert (ids(debugged)[:2], debugged["NoNewPrivs"]) == (("1000", "2000"), ["1"])


CHECK: Final = "test $(id -u):$(id -g) = 1000:2000 && busybox grep -q 'NoNewPrivs:.1' /proc/self/status && ! mkdir /x"


def test_probes_and_hooks_run_with_the_containers_context(agent: Agent) -> None:
    check = {"exec": {"command": ["sh", "-c", CHECK]}}
    context = {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    main = container(
        script=STAY,
        securityContext=context,
        readinessProbe={**check, "periodSeconds": 1, "timeoutSeconds": 10},
        lifecycle={"postStart": check},
    )
    agent.run(pod("checked", main, securityContext={"runAsUser": 1000, "runAsGroup": 2000, "runAsNonRoot": True}))


@pytest.mark.slow
def test_a_change_of_the_pods_context_makes_new_containers(agent: Agent) -> None:
    agent.run(pod("changing", container()))
    before = agent.eye.container("changing", "main").id
    agent.write(pod("changing", container(), securityContext={"runAsUser": 1000}))
    agent.until(lambda: is_another(agent, before), "another container")
    assert podman("exec", agent.eye.container("changing", "main").id, "id", "-u").strip() == "1000"


def is_another(agent: Agent, before: str) -> bool:
    found = agent.eye.running("changing").get(("changing", "main"))
    return found is not None and found.id != before
