"""Specifications that Podman is asked to make."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.v1.container import ContainerPort
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import ExecAction, Lifecycle, LifecycleHandler, SleepAction
from ipc.k8s.kubecontainer.hashing import container_hash, sandbox_hash
from tests.fakes.ownership import ownership
from tests.support.pods import IMAGE, UID, container, pod
from workers.kubecontainer import labels
from workers.kubecontainer.naming import container_name, container_name_of, infra_name, sandbox_name, uid8
from workers.proc.container_tags import container_tag
from workers.specgen.sandbox_namespaces import make_port_mappings
from workers.specgen.spec import ContainerConfig, container_spec, pod_spec

PID_FILE = Path("/logs/infra_0.pid")
TEST = ownership("test")
PLACE = ContainerConfig(
    ownership=TEST, sandbox_id="abc", image=IMAGE, attempt=3, backoff_s=40.0, log_file=Path("/logs/main/3.log")
)
BEGUN = "2026-01-02T03:04:05Z"
PODMAN_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")


def spec_of(**fields: Any) -> dict[str, Any]:
    of = pod(container("main", **fields))
    return container_spec(of, of.spec.containers[0], PLACE)


def test_a_sandbox() -> None:
    of = pod("main", termination_grace_period_seconds=7)
    assert pod_spec(of, TEST, 2, PID_FILE) == {
        "name": "web_default_0c3ad6a8_2",
        "infra_name": "web_default_0c3ad6a8_2_infra",
        "infra_conmon_pid_file": str(PID_FILE),
        "labels": TEST.signed_sandbox(
            "web_default_0c3ad6a8_2",
            {
                labels.INSTANCE: "test",
                labels.POD_NAME: "web",
                labels.POD_NAMESPACE: "default",
                labels.POD_UID: UID,
                labels.GRACE_PERIOD_S: "7",
                labels.SANDBOX_HASH: sandbox_hash(of),
                labels.ATTEMPT: "2",
                labels.HOST_NETWORK: "false",
                labels.RESOURCES: "{}",
                labels.ACTIVE_SINCE: "",
            },
        ),
        "exit_policy": "continue",
        "shared_namespaces": ["ipc", "net", "uts"],
        "no_manage_hosts": True,
        "hostname": "web",
        "portmappings": [],
    }


@pytest.mark.parametrize(("deadline_s", "noted"), [(60, BEGUN), (None, "")])
def test_a_sandbox_says_since_when_a_pod_with_a_deadline_is_active(deadline_s: int | None, noted: str) -> None:
    """Only there: agents that know no such label take whatever has it for a stranger's."""
    of = pod("main", active_deadline_seconds=deadline_s)
    made = pod_spec(of, TEST, 1, PID_FILE, active_since=BEGUN)["labels"]
    assert labels.read_sandbox(made).active_since == noted


def test_only_ports_of_the_host_are_published() -> None:
    ports = (
        ContainerPort(container_port=80, host_port=8080, host_ip="127.0.0.1"),
        ContainerPort(container_port=53, host_port=5353, protocol="UDP"),
        ContainerPort(container_port=443),
    )
    assert pod_spec(pod(container("main", ports=ports)), TEST, 0, PID_FILE)["portmappings"] == [
        {"container_port": 80, "host_port": 8080, "host_ip": "127.0.0.1", "protocol": "tcp"},
        {"container_port": 53, "host_port": 5353, "host_ip": "", "protocol": "udp"},
    ]


def test_the_hosts_network_is_taken_as_it_is() -> None:
    ports = (ContainerPort(container_port=80, host_port=80),)
    of = pod(container("main", ports=ports), host_network=True, hostname="ignored", name="n" * 70)
    spec = pod_spec(of, TEST, 0, PID_FILE)
    assert spec["netns"] == {"nsmode": "host"}
    assert "uts" not in spec["shared_namespaces"]
    assert "portmappings" not in spec
    assert spec["hostname"] == "n" * 63, "the infra container's own, which the kernel takes"
    assert spec["labels"][labels.HOST_NETWORK] == "true"


def test_a_container() -> None:
    of = pod(container("main", command=("sh", "-c"), args=("exit",)))
    place = msgspec.structs.replace(PLACE, environment={"A": "b"})
    assert container_spec(of, of.spec.containers[0], place) == {
        "name": "main_web_default_0c3ad6a8_3",
        "pod": "abc",
        "image": IMAGE,
        "entrypoint": ["sh", "-c"],
        "command": ["exit"],
        "env": {"A": "b"},
        "terminal": False,
        "stdin": False,
        "labels": TEST.signed_container(
            "main_web_default_0c3ad6a8_3",
            {
                labels.INSTANCE: "test",
                labels.POD_NAME: "web",
                labels.POD_NAMESPACE: "default",
                labels.POD_UID: UID,
                labels.GRACE_PERIOD_S: "30",
                labels.CONTAINER_NAME: "main",
                labels.CONTAINER_HASH: container_hash(of.spec.containers[0], ContainerKind.REGULAR),
                labels.ATTEMPT: "3",
                labels.BACKOFF_S: "40",
                labels.LEAVES_PROCESSES: "false",
                labels.PRE_STOP: "",
                labels.TERMINATION_MESSAGE_PATH: "",
                labels.TERMINATION_MESSAGE_POLICY: "",
                labels.RESOURCES: "{}",
                labels.DEVICES: "",
                labels.IMAGE_VOLUMES: "",
            },
        ),
        "log_configuration": {"driver": "k8s-file", "path": "/logs/main/3.log", "size": 2**62},
        "restart_policy": "no",
        "healthconfig": {"Test": ["NONE"], "Interval": 30_000_000_000, "Timeout": 30_000_000_000, "Retries": 3},
        "sdnotifyMode": "ignore",
        "systemd": "false",
        "manage_password": False,
        "image_volume_mode": "ignore",
        "mask": ["/proc/asound", "/proc/interrupts", "/sys/devices/virtual/powercap"],
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"command": (), "args": ()}, {}),
        ({"command": ("a",), "args": ()}, {"entrypoint": ["a"]}),
        ({"command": (), "args": ("b",)}, {"command": ["b"]}),
        ({"command": ("a",), "args": ("b",)}, {"entrypoint": ["a"], "command": ["b"]}),
    ],
    ids=["the image's", "command", "args", "both"],
)
def test_what_the_manifest_does_not_say_is_the_images(fields: dict[str, Any], expected: dict[str, list[str]]) -> None:
    spec = spec_of(**fields)
    assert {key: spec[key] for key in ("entrypoint", "command") if key in spec} == expected
    assert not spec.keys() & {"work_dir", "create_working_dir"}
    given = spec_of(working_dir="/srv")
    assert (given["work_dir"], given["create_working_dir"]) == ("/srv", True)


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        (("sh", "-c", "echo $(A) $$(A) $(NONE)"), (), {"entrypoint": ["sh", "-c", "echo a b $(A) $(NONE)"]}),
        ((), ("$(A)", "$(EMPTY)"), {"command": ["a b", ""]}),
        (("$(EMPTY)",), ("a",), {"entrypoint": ["", "a"]}),
        (("$(EMPTY)", "$(A)"), ("a",), {"entrypoint": ["", "a b"], "command": ["a"]}),
    ],
    ids=["command", "args", "one empty word", "more words"],
)
def test_command_and_args_see_the_environment(
    command: tuple[str, ...], args: tuple[str, ...], expected: dict[str, list[str]]
) -> None:
    """Podman takes an entrypoint of one empty word for none, and would run the first argument."""
    of = pod(container("main", command=command, args=args))
    place = msgspec.structs.replace(PLACE, environment={"A": "a b", "EMPTY": ""})
    spec = container_spec(of, of.spec.containers[0], place)
    assert {key: spec[key] for key in ("entrypoint", "command") if key in spec} == expected


def test_the_sandboxs_name_in_a_namespace_of_its_own() -> None:
    of = pod(container("main"))
    spec = container_spec(of, of.spec.containers[0], msgspec.structs.replace(PLACE, hostname="web"))
    assert (spec["hostname"], spec["utsns"]) == ("web", {"nsmode": "private"})
    assert not {"utsns", "hostname"} & spec_of().keys()


def test_the_file_for_the_last_message_is_mounted_where_the_manifest_says() -> None:
    of = container("main", termination_message_path="/tmp/last words", termination_message_policy="File")
    place = msgspec.structs.replace(PLACE, termination_log=Path("/pods/u/containers/main/3.termination-log"))
    spec = container_spec(pod(of), of, place)
    assert spec["mounts"] == [
        {
            "type": "bind",
            "source": "/pods/u/containers/main/3.termination-log",
            "destination": "/tmp/last words",
            "options": ["rbind", "rprivate", "rw", "Z"],
        }
    ]
    assert spec["labels"][labels.TERMINATION_MESSAGE_PATH] == "/tmp/last words"
    assert spec["labels"][labels.TERMINATION_MESSAGE_POLICY] == "File"


@pytest.mark.parametrize(
    "hook",
    [
        LifecycleHandler(sleep=SleepAction(seconds=0)),
        LifecycleHandler(exec=ExecAction(command=("sh", "-c", "echo 'ä' \"$A\"\n"))),
    ],
    ids=["sleep", "exec"],
)
def test_how_a_container_is_stopped_is_written_on_it(hook: LifecycleHandler) -> None:
    spec = spec_of(lifecycle=Lifecycle(pre_stop=hook, post_start=hook, stop_signal="SIGRTMIN+3"))
    assert msgspec.json.decode(spec["labels"][labels.PRE_STOP], type=LifecycleHandler) == hook
    assert spec["stop_signal"] == 37


def test_without_a_stop_signal_the_images_counts() -> None:
    hook = LifecycleHandler(sleep=SleepAction(seconds=1))
    assert "stop_signal" not in spec_of(lifecycle=Lifecycle(post_start=hook))


def test_with_a_target_it_shares_that_pid_namespace() -> None:
    of = container("debug")
    spec = container_spec(pod("main"), of, msgspec.structs.replace(PLACE, target_pid=4711))
    assert spec["pidns"] == {"nsmode": "path", "value": "/proc/4711/ns/pid"}
    assert "pidns" not in spec_of()


def test_specs_are_plain_json() -> None:
    assert json.loads(json.dumps(spec_of())) == spec_of()
    assert json.loads(json.dumps(pod_spec(pod(), TEST, 0, PID_FILE))) == pod_spec(pod(), TEST, 0, PID_FILE)


@pytest.mark.parametrize("uid", [UID, "12345678", "a uid/of my:own", ""])
def test_names_are_podmans_whatever_the_uid(uid: str) -> None:
    of = pod(uid=uid, name="a." + "b" * 251)
    for name in (sandbox_name(of, 0), infra_name(of, 0), container_name(of, "c" * 63, 12)):
        assert PODMAN_NAME.fullmatch(name)


def test_names_tell_pods_and_attempts_apart() -> None:
    def names(of: Pod, attempt: int) -> set[str]:
        return {sandbox_name(of, attempt), infra_name(of, attempt), container_name(of, "infra", attempt)}

    made = [names(pod(uid=uid), attempt) for uid in ("web-0001", "web-0002", UID) for attempt in (0, 1)]
    assert len(set().union(*made)) == sum(map(len, made))


@pytest.mark.parametrize("uid", [UID, "web-0001"])
def test_a_containers_labels_tell_the_name_that_we_gave_it(uid: str) -> None:
    of = pod(uid=uid)
    spec = container_spec(of, of.spec.containers[0], PLACE)
    assert container_name_of(labels.read_container(spec["labels"])) == spec["name"]


def test_a_uuid_shows_its_head() -> None:
    assert uid8(UID) == "0c3ad6a8"


def test_of_two_equal_ports_the_first_counts() -> None:
    ports = (
        ContainerPort(name="web", container_port=80, host_port=8080),
        ContainerPort(name="web", container_port=81, host_port=8081),
        ContainerPort(container_port=53, host_port=5353, protocol="UDP"),
        ContainerPort(container_port=53, host_port=5353, protocol="UDP"),
        ContainerPort(container_port=53, host_port=5353),
        ContainerPort(container_port=53, host_port=5353, host_ip="127.0.0.1"),
    )
    mappings = make_port_mappings(container("main", ports=ports))
    assert [(m.container_port, m.protocol, m.host_ip) for m in mappings] == [
        (80, "TCP", ""),
        (53, "UDP", ""),
        (53, "TCP", ""),
        (53, "TCP", "127.0.0.1"),
    ]


@pytest.mark.parametrize(
    ("spec", "target_pid", "marked"),
    [
        ({}, 0, False),
        ({}, 7, True),
        ({"host_pid": True}, 0, True),
        ({"share_process_namespace": True}, 0, True),
        ({"share_process_namespace": False}, 0, False),
    ],
)
def test_what_its_end_does_not_end_is_marked(spec: dict[str, Any], target_pid: int, marked: bool) -> None:
    of = pod("main", **spec)
    made = container_spec(of, of.spec.containers[0], msgspec.structs.replace(PLACE, target_pid=target_pid))
    assert made.get("r_limits") == ([container_tag(UID, "main", 3).rlimit()] if marked else None)
    assert labels.read_container(made["labels"]).leaves_processes is marked
