"""Bodies as Podman 4.3.1 sent them, shortened."""

from __future__ import annotations

import json

import msgspec
import pytest

from workers.kubecontainer.runtime import ErrorKind, NetworkPrograms, RuntimeCallError
from workers.libpod import decode, decode_images, failures
from workers.userns.id_ranges import shown

SLIRP = frozenset({"slirp4netns"})
INFRA = b"""{"AutoRemove":false,"Command":null,"Created":"2026-11-20T09:52:54.399710182Z","CreatedAt":"","Exited":false,
"ExitedAt":-62135596800,"ExitCode":0,"Id":"49d1","Image":"localhost/podman-pause:4.3.1-0","ImageID":"c265",
"IsInfra":true,"Labels":{"io.kubernetes.pod.uid":"u0"},"Mounts":[],"Names":["36f8-infra"],"Namespaces":{},
"Networks":[],"Pid":18931,"Pod":"36f8","PodName":"web","Ports":null,"Size":null,"StartedAt":1795168374,
"State":"running","Status":""}"""
CONTAINER = b"""{"Id":"3c3d","Created":"2026-11-20T09:50:20.952183208Z","Path":"sleep","Args":["1000"],
"State":{"OciVersion":"1.0.2-dev","Status":"exited","Running":false,"OOMKilled":true,"Dead":false,"Pid":0,
"ExitCode":137,"Error":"","StartedAt":"2026-11-20T09:50:22.437325066Z","FinishedAt":"2026-11-20T09:50:22.451621068Z",
"Health":{"Status":"","FailingStreak":0,"Log":null}},"Image":"aed7","ImageName":"localhost/t:latest","Pod":"d171",
"Name":"web-c","RestartCount":0,"IsInfra":false,"Dependencies":["e9a4"],"NetworkSettings":{"IPAddress":"","Ports":{}},
"Config":{"Labels":null,"StopSignal":15},"HostConfig":{"LogConfig":{"Type":"k8s-file","Path":"/logs/0.log"}}}"""


def test_a_list_of_containers() -> None:
    (found,) = decode.decode_containers(b"[" + INFRA + b"]")
    assert (found.id, found.name, found.pod_id, found.pod_name, found.is_infra) == (
        "49d1",
        "36f8-infra",
        "36f8",
        "web",
        True,
    )
    assert (found.state, found.pid, found.exit_code) == ("running", 18931, 0)
    assert (found.started_at, found.exited_at) == (1795168374.0, 0.0)
    assert (found.image, found.image_id) == ("localhost/podman-pause:4.3.1-0", "c265")
    assert found.labels == {"io.kubernetes.pod.uid": "u0"}


@pytest.mark.parametrize("body", [b"null", b"null\n", b"[]", b" [ ] "])
def test_an_empty_list(body: bytes) -> None:
    assert decode.decode_containers(body) == ()
    assert decode.decode_pods(body) == ()


def test_null_fields_are_empty() -> None:
    (found,) = decode.decode_containers(b'[{"Id":"x","State":"created","Names":null,"Labels":null}]')
    assert (found.name, found.labels) == ("", {})
    (pod,) = decode.decode_pods(b'[{"Id":"x","Containers":null,"Labels":null}]')
    assert (pod.containers, pod.labels, pod.created_at) == ((), {}, 0.0)


def test_a_list_of_pods() -> None:
    (found,) = decode.decode_pods(
        b'[{"Cgroup":"/libpod_parent","Containers":[{"Id":"i","Names":"x-infra","Status":"running"},'
        b'{"Id":"c","Names":"c","Status":"exited"}],"Created":"2026-11-20T09:52:54.5Z","Id":"9d1b","InfraId":"i",'
        b'"Name":"web","Namespace":"","Networks":[],"Status":"Degraded","Labels":{"a":"b"}}]'
    )
    assert (found.id, found.name, found.infra_id, found.labels) == ("9d1b", "web", "i", {"a": "b"})
    assert found.containers == (("i", "running"), ("c", "exited"))
    assert found.created_at % 60 == 54.5


def test_an_inspected_container() -> None:
    found = decode.decode_container(CONTAINER)
    assert (found.id, found.name, found.pod_id, found.is_infra) == ("3c3d", "web-c", "d171", False)
    assert (found.state, found.pid, found.exit_code, found.oom_killed) == ("exited", 0, 137, True)
    assert found.finished_at - found.started_at == pytest.approx(0.014296, abs=1e-6)
    assert found.started_at % 60 == pytest.approx(22.437325, abs=1e-6)
    assert (found.image, found.image_id) == ("localhost/t:latest", "aed7")
    assert (found.labels, found.ips, found.log_path) == ({}, (), "/logs/0.log")


def test_a_container_that_never_ran_has_no_times() -> None:
    body = CONTAINER.replace(b"2026-11-20T09:50:22.437325066Z", b"0001-01-01T00:00:00Z")
    assert decode.decode_container(body).started_at == 0.0


def test_a_second_start_is_no_error() -> None:
    noted = b'"Error":"container 3c3d: container is running"'
    assert decode.decode_container(CONTAINER.replace(b'"Error":""', noted)).error == ""
    assert decode.decode_container(CONTAINER.replace(b'"Error":""', b'"Error":"not found"')).error == "not found"


def test_addresses_are_those_of_the_networks_ipv4_first() -> None:
    networks = (
        b'"NetworkSettings":{"IPAddress":"10.88.0.2","Networks":{"a":{"IPAddress":"10.88.0.2",'
        b'"GlobalIPv6Address":"fd00::2"},"b":{"IPAddress":"10.89.0.2","GlobalIPv6Address":""}}}'
    )
    found = decode.decode_container(CONTAINER.replace(b'"NetworkSettings":{"IPAddress":"","Ports":{}}', networks))
    assert found.ips == ("10.88.0.2", "10.89.0.2", "fd00::2")


@pytest.mark.parametrize(
    ("wire", "name"), [(b"15", "SIGTERM"), (b"37", "SIGRTMIN+3"), (b'"SIGINT"', "SIGINT"), (b"0", ""), (b'""', "")]
)
def test_a_stop_signal_is_shown_by_number_or_by_name(wire: bytes, name: str) -> None:
    body = CONTAINER.replace(b'"StopSignal":15', b'"StopSignal":' + wire)
    assert decode.decode_container(body).stop_signal == name


def test_an_inspected_pod() -> None:
    found = decode.decode_pod(
        b'{"Id":"d171","Name":"web","Created":"2026-11-20T09:50:20.928003488Z","State":"Degraded","Labels":null,'
        b'"InfraContainerID":"e9a4","Containers":[{"Id":"e9a4","Name":"x","State":"running"}]}'
    )
    assert (found.id, found.name, found.infra_id, found.labels) == ("d171", "web", "e9a4", {})
    assert found.containers == (("e9a4", "running"),)


IDS = b"""{"host":{"arch":"amd64","idMappings":{"gidmap":[{"container_id":0,"host_id":1001,"size":1}],
"uidmap":[{"container_id":0,"host_id":1001,"size":1},{"container_id":1,"host_id":100000,"size":65536}]}},"store":{}}"""


@pytest.mark.parametrize(
    ("body", "users", "groups"),
    [(IDS, "0-65536", "0"), (b'{"host":{"idMappings":{}}}', "0-4294967294", "0-4294967294")],
    ids=["rootless", "root"],
)
def test_the_ids_that_there_are(body: bytes, users: str, groups: str) -> None:
    found = decode.decode_id_ranges(body)
    assert (shown(found.users), shown(found.groups)) == (users, groups)


@pytest.mark.parametrize(
    ("body", "programs"),
    [
        (b'{"host":{"slirp4netns":{"executable":"/usr/bin/slirp4netns"}}}', NetworkPrograms(found=SLIRP)),
        (b'{"host":{"slirp4netns":{}}}', NetworkPrograms()),
        (
            b'{"host":{"slirp4netns":{"executable":"/s"},"pasta":{"executable":""},"rootlessNetworkCmd":"pasta"}}',
            NetworkPrograms(default="pasta", found=SLIRP),
        ),
    ],
    ids=["4.3", "4.3 without", "5"],
)
def test_programs_for_the_network(body: bytes, programs: NetworkPrograms) -> None:
    assert decode.decode_network_programs(body) == programs


def test_an_image() -> None:
    found = decode_images.decode_image(
        b'{"Id":"aed7","RepoDigests":["localhost/t@sha256:ab"],"User":"","Size":1997895,'
        b'"Config":{"User":"nobody","StopSignal":"SIGINT"}}'
    )
    assert (found.id, found.digests, found.user, found.stop_signal) == (
        "aed7",
        ("localhost/t@sha256:ab",),
        "nobody",
        "SIGINT",
    )
    assert found.size_bytes == 1997895


@pytest.mark.parametrize(
    ("annotations", "directs"),
    [
        (b"null", False),
        (b'{"org.opencontainers.image.title":"run.oci.x"}', False),
        (b'{"a":"","run.oci.seccomp_bpf_data":""}', True),
    ],
)
def test_an_image_that_would_direct_the_oci_runtime(annotations: bytes, directs: bool) -> None:
    body = b'{"Id":"aed7","Annotations":' + annotations + b"}"
    assert decode_images.decode_image(body).directs_runtime is directs


def test_an_image_without_any_configuration() -> None:
    assert decode_images.decode_image(b'{"Id":"aed7","RepoDigests":null,"Config":{}}').digests == ()


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        (b'[{"Id":"3c3d","RawInput":"3c3d"}]', ()),
        (b'{"Err":null,"Id":"d171"}\n', ()),
        (b'{"Err":null,"Id":"d171","RemovedCtrs":{"x":null}}', ()),
        (b"", ()),
        (b"null", ()),
        (b'[{"Id":"3c3d","Err":{}}]', ("3c3d: {}",)),
        (b'{"Err":null,"Id":"d171","RemovedCtrs":{"x":null,"3c3d":"busy"}}', ('3c3d: "busy"',)),
        (b'{"Err":"no","Id":"0123456789abcdef"}', ('0123456789ab: "no"',)),
    ],
)
def test_removal_reports_say_what_went_wrong(body: bytes, errors: tuple[str, ...]) -> None:
    assert decode.decode_removal_errors(body) == errors


def test_a_pull_ends_with_its_report() -> None:
    assert decode_images.decode_pull(b'{"images":["aed7"],"id":"aed7"}\n') == "aed7"
    assert decode_images.decode_pull(b'{"images":["aed7"]}') == "aed7"


def test_progress_is_what_is_being_done() -> None:
    assert decode_images.decode_progress(b'{"stream":"Copying blob  sha256:ab\\n"}') == "Copying blob sha256:ab"
    assert decode_images.decode_progress(b'{"images":["aed7"],"id":"aed7"}') == ""
    assert decode_images.decode_progress(b"no JSON") == ""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error":"pinging container registry: connection refused"}\n', "connection refused"),
        (b'{"error":"manifest unknown"}', "manifest unknown"),
        (b'{"error":"proxyconnect tcp: dial http://me:hush@proxy:3128: refused"}', "dial http://proxy:3128: refused"),
        (b"", "without an image"),
        (b'{"stream":"Trying to pull"}', "without an image"),
    ],
)
def test_a_failed_pull_says_why(body: bytes, words: str) -> None:
    with pytest.raises(RuntimeCallError, match=words) as caught:
        decode_images.decode_pull(body)
    assert caught.value.kind is ErrorKind.PULL


def frame(text: bytes, stream: int = 1) -> bytes:
    return bytes((stream, 0, 0, 0)) + len(text).to_bytes(4, "big") + text


def ended(exit_code: int) -> bytes:
    return b'{"CanRemove":true,"ExitCode":%d,"ID":"40a6","Running":false,"Pid":0}' % exit_code


@pytest.mark.parametrize(
    ("framed", "output", "limited"),
    [
        (b"", b"", False),
        (frame(b"hi\n") + frame(b"err\n", 2), b"hi\nerr\n", False),
        (frame(b"0123456789"), b"0123456789", False),
        (frame(b"0123") + frame(b"456789a"), b"0123456789", True),
        (frame(b"0123456789")[:-5], b"01234", False),
        (frame(b"01") + frame(b"23")[:6], b"01", False),
    ],
)
def test_the_output_of_a_command_comes_in_frames(framed: bytes, output: bytes, limited: bool) -> None:
    found = decode.decode_exec_result(ended(7), framed, 10)
    assert (found.exit_code, found.output, found.limited) == (7, output, limited)


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        (127, b"executable file `/no` not found: OCI runtime attempted to invoke a command that was not found"),
        (126, b"crun: open executable: Operation not permitted: OCI permission denied"),
    ],
)
def test_a_command_that_could_not_be_run_shows_in_its_output(exit_code: int, words: bytes) -> None:
    framed = frame(b"Error: " + words + b"\n", 2) + frame(b"Error: read unixpacket: connection reset by peer\n", 2)
    with pytest.raises(RuntimeCallError) as caught:
        decode.decode_exec_result(ended(exit_code), framed, 10)
    assert (caught.value.kind, caught.value.message) == (ErrorKind.COMMAND, words.decode())


def test_a_shell_that_does_not_find_a_command_has_run() -> None:
    assert decode.decode_exec_result(ended(127), frame(b"sh: no: not found\n"), 99).exit_code == 127


def test_a_command_that_outlives_its_output_broke_off() -> None:
    with pytest.raises(RuntimeCallError) as caught:
        decode.decode_exec_result(b'{"ExitCode":0,"Running":true,"Pid":77}', b"", 10)
    assert caught.value.kind is ErrorKind.UNAVAILABLE


@pytest.mark.parametrize(("running", "pid"), [(b"true", 77), (b"false", 0)])
def test_the_pid_of_a_command_that_runs(running: bytes, pid: int) -> None:
    assert decode.decode_exec_pid(b'{"Running":' + running + b',"Pid":77}') == pid


def test_an_event() -> None:
    found = decode.decode_event(
        b'{"status":"died","id":"e9c9","Type":"container","Action":"died","Actor":{"ID":"e9c9","Attributes":'
        b'{"containerExitCode":"137","io.kubernetes.pod.uid":"u0"}},"time":1795168499,"timeNano":1795168499250000000}'
    )
    assert (found.action, found.container_id) == ("died", "e9c9")
    assert found.time == pytest.approx(1795168499.25, abs=1e-5)
    assert found.labels["io.kubernetes.pod.uid"] == "u0"


@pytest.mark.parametrize(
    ("status", "cause", "kind"),
    [
        (500, "image not known", ErrorKind.IMAGE_UNKNOWN),
        (404, "no such image", ErrorKind.IMAGE_UNKNOWN),
        (500, "that name is already in use", ErrorKind.NAME_IN_USE),
        (409, "pod already exists", ErrorKind.NAME_IN_USE),
        (500, "container already exists", ErrorKind.NAME_IN_USE),
        (404, "no such container", ErrorKind.NOT_FOUND),
        (500, "no such pod", ErrorKind.NOT_FOUND),
        (500, "container has already been removed", ErrorKind.NOT_FOUND),
        (500, "container state improper", ErrorKind.WRONG_STATE),
        (409, "anything else", ErrorKind.WRONG_STATE),
        (500, "OCI runtime attempted to invoke a command that was not found", ErrorKind.COMMAND),
        (500, "OCI permission denied", ErrorKind.COMMAND),
        (500, "no matching entries in passwd file", ErrorKind.COMMAND),
        (500, 'workdir "/x" does not exist on container 1', ErrorKind.COMMAND),
        (500, "invalid argument", ErrorKind.INVALID),
        (500, "invalid signal: NOSIG", ErrorKind.INVALID),
        (500, "no command or entrypoint provided, and no CMD or ENTRYPOINT from image", ErrorKind.INVALID),
        (400, "anything else", ErrorKind.INVALID),
        (404, "anything else", ErrorKind.NOT_FOUND),
        (500, "anything else", ErrorKind.INTERNAL),
    ],
)
def test_the_cause_decides_on_the_kind_then_the_status(status: int, cause: str, kind: ErrorKind) -> None:
    body = msgspec.json.encode({"cause": cause, "message": f"words: {cause}", "response": status})
    error = failures.call_error("create container", status, body)
    assert error.kind is kind
    assert str(error) == f"create container: words: {cause}"


@pytest.mark.parametrize(
    ("cause", "message", "kind"),
    [
        ("OCI runtime error", f"crun: container `{'0a' * 32}` already exists: OCI runtime error", ErrorKind.LEFTOVER),
        (
            "OCI runtime error",
            "runc: runc create failed: container with given ID already exists: OCI runtime error",
            ErrorKind.LEFTOVER,
        ),
        ("x", f"`/usr/bin/crun start {'0a' * 32}` failed: exit status 1", ErrorKind.LEFTOVER),
        ("OCI runtime error", "crun: something else: OCI runtime error", ErrorKind.INTERNAL),
        ("container already exists", "name x is in use: container already exists", ErrorKind.NAME_IN_USE),
    ],
)
def test_what_podman_died_over_shows_in_the_words(cause: str, message: str, kind: ErrorKind) -> None:
    body = msgspec.json.encode({"cause": cause, "message": message, "response": 500})
    assert failures.call_error("start container", 500, body).kind is kind


def test_only_the_first_of_two_documents_counts() -> None:
    body = b'{"cause":"image not known","message":"m","response":500}\n{"cause":"no such pod","message":"n"}\n'
    error = failures.call_error("inspect image", 500, body)
    assert (error.kind, error.message) == (ErrorKind.IMAGE_UNKNOWN, "m")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"cause":5}', b"\xff\xfe"])
def test_an_error_without_a_readable_body_goes_by_its_status(body: bytes) -> None:
    assert failures.call_error("ping", 404, body).kind is ErrorKind.NOT_FOUND


def test_endless_words_are_cut() -> None:
    error = failures.call_error("ping", 500, msgspec.json.encode({"cause": "x", "message": "y" * 100_000}))
    assert len(error.message) < failures.MAX_MESSAGE_CHARS + 50


@pytest.mark.parametrize("signal", ["terminated", "killed"])
def test_an_oci_runtime_that_was_ended_from_outside_says_nothing_about_its_container(signal: str) -> None:
    words = f"`/usr/bin/crun start {'5' * 64}` failed: signal: {signal}"
    body = json.dumps({"cause": f"signal: {signal}", "message": words, "response": 500}).encode()
    assert failures.call_error("start container", 500, body).kind is ErrorKind.UNAVAILABLE
