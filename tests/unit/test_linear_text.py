"""Work with hostile text is linear and bounded: eight times the text is about eight times the work, for every parser
that sees text of a manifest, a container, an image, a registry, a client or Podman.

Work is counted in steps: one is a turn of an empty loop, measured in the same run on this thread's own CPU clock, which
neither the machine's speed nor its load changes. C code (regular expressions, string methods) is so counted too, which
no trace does. Less than a step for each character counts as one.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import json
import math
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import h2.events
import msgspec
import pytest

from ipc.host import clock, network_addresses
from ipc.host.log.verbosity import area_problem
from ipc.host.text import durations
from ipc.host.text.gofmt import quoted
from ipc.host.text.ip_address import without_leading_zeros
from ipc.host.text.safe_text import safe_text
from ipc.host.text.userinfo import without_userinfo
from ipc.k8s.api import errors as api_errors
from ipc.k8s.api.decode import decode_pod, decode_secret
from ipc.k8s.api.defaults import default_pod
from ipc.k8s.api.image import parse_image_name
from ipc.k8s.api.podman_annotations import USERNS, kept_id
from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.support.cluster import is_of_cluster
from ipc.k8s.api.v1.config_objects import Secret
from ipc.k8s.api.v1.env import EnvVar
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.probe import HTTPGetAction
from ipc.k8s.api.v1.projected import ClusterTrustBundleProjection
from ipc.k8s.api.validation import names
from ipc.k8s.api.validation.pods.pod import validate_pod
from ipc.k8s.network.bandwidth import bandwidth_problem
from ipc.k8s.network.pod_ips import sort_pod_ips
from ipc.k8s.podobjects.redaction import blocks_of, redacted
from ipc.k8s.podresources.pod_cgroups import uid_in_name
from ipc.k8s.scheduling import node_affinity
from ipc.link.wire.stream_channels import EXIT_CODE_CAUSE, NON_ZERO_EXIT_CODE, StreamStatus
from supervisor.cli.printers.yaml_keys import in_order
from supervisor.cli.printers.yaml_scalars import written_lines, written_text
from supervisor.client.bootstrap_token import is_signed, parse_token
from supervisor.processes.sd_notify import watchdog_timeout_s
from supervisor.sources.documents.reader import read_documents
from supervisor.sources.objects.apart import LIGHT_BYTES, is_heavy
from supervisor.state.ends_journal import decode_journal
from tests.house import trees_with
from tests.support.pods import container, pod
from workers.api_server.core import query
from workers.api_server.kubelet.container_logs import kubelet_log_options
from workers.api_server.kubelet.node_logs import journal_query
from workers.api_server.store import field_terms, selectors
from workers.api_server.streams import port_pairs
from workers.certificates.validity import read_validity
from workers.cluster.objects.trust_bundles import Bundle, BundleMeta, BundleSpec, selected
from workers.env import downward
from workers.env.env_files import parse_env_file
from workers.env.environment import EnvironmentSources, make_environment
from workers.env.expansion import expand, expand_all, expand_sub_path_expr
from workers.exec.child import last_error
from workers.images.credentials import DOCKER_CONFIG_JSON, logins_for, read_pull_secret
from workers.kubeclient.reflector_state import ReflectorState
from workers.kubeclient.retry import retry_after_s
from workers.kubeclient.watch_frames import WatchFormatError, WatchFrames
from workers.kubecontainer import labels
from workers.kubecontainer.image_reference import parse_image_reference
from workers.libpod import failures
from workers.logs import cri_format
from workers.network import dns
from workers.podhttp.endpoints import NODE, Endpoint, ascii_host
from workers.podhttp.request import redirected, request_of
from workers.prober.exec import expanded_command
from workers.prober.grpc import decode_status
from workers.prober.grpc_call import _Answer
from workers.proc.signal_names import signal_name, signal_number
from workers.spdy.connection import Connection
from workers.spdy.frames import SynStream
from workers.specgen.container_user import parse_image_user
from workers.volumemanager.first_owner import ImageAccounts, first_owner
from workers.volumemanager.plugins.payload import path_problem

ROOT: Final = Path(__file__).parents[2]
TIMES: Final = 8
MAX_GROWTH: Final = 3 * TIMES
"""Linear work has 8, quadratic work 64."""
ROUNDS: Final = 20
"""The least of so many measures is the work; one round is enough where growth is small at once."""
FEW: Final = 2_000
"""Characters or items of the smaller text; the larger one has TIMES as many."""

Text = str | bytes


# --- steps -------------------------------------------------------------------------------------------------------


def cpu_s(act: Callable[[], object]) -> float:
    """Run it; how a hostile text is refused is no matter here: other tests say it."""
    urllib.parse.clear_cache()  # type: ignore[attr-defined]  # a text that is known costs nothing
    began = time.thread_time()
    with contextlib.suppress(Exception):
        act()
    return time.thread_time() - began


def turns(number: int) -> None:
    for _ in range(number):
        pass


TURN_S: Final = min(cpu_s(lambda: turns(100_000)) for _ in range(9)) / 100_000


def growth(parse: Callable[[Any], object], make: Callable[[int], Any], few: int = FEW) -> float:
    """How many times more steps TIMES the text takes."""
    texts = {size: make(size) for size in (few, TIMES * few)}
    steps = dict.fromkeys(texts, math.inf)
    found = math.inf
    for _ in range(ROUNDS):
        for size, text in texts.items():
            steps[size] = min(steps[size], max(cpu_s(partial(parse, text)) / TURN_S, size))
        found = steps[TIMES * few] / steps[few]
        if found < MAX_GROWTH:
            break
    return found


def test_steps_tell_linear_work_from_quadratic() -> None:
    """The last one is how references were once looked for. `growth` believes the first small figure, which may be one
    of a disturbed moment: of quadratic work the largest of three counts."""
    once = re.compile(r"\$(?:\$|\(([^)]*)\))")

    def pairs(text: str) -> object:
        return [at for at in range(len(text)) for _ in text[at:]]

    assert growth(lambda text: text.count("x"), lambda n: "ab" * n) < MAX_GROWTH
    assert growth(lambda text: [char for char in text if char == "x"], lambda n: "ab" * n) < MAX_GROWTH
    assert max(growth(pairs, lambda n: "ab" * n, few=100) for _ in range(3)) > MAX_GROWTH
    assert max(growth(partial(once.sub, ""), lambda n: "$(" * n, few=250) for _ in range(3)) > MAX_GROWTH


# --- texts -------------------------------------------------------------------------------------------------------

MARKS: Final = "\u0315\u0300"
"""Combining marks in the order in which normalizing has to sort them."""


def repeated(*pieces: str, before: str = "", after: str = "") -> dict[str, Callable[[int], str]]:
    """A text of each piece, over and over."""
    return {f"{before}{piece}…{after}": partial(_repeated, before, piece, after) for piece in pieces}


def _repeated(before: str, piece: str, after: str, times: int) -> str:
    return before + piece * times + after


DIGITS: Final = repeated("9", "0", "1_", "٣") | repeated("9", before="-") | repeated("0", before="0.", after="1")
REFERENCES: Final = {
    **repeated("$(", "$", "$$", "$()", "$(A", "$(A)", "$)", "(", ")"),
    **repeated("$(", before="$(A)") | repeated("$(", after=")"),
}
NAMES: Final = {
    **repeated("a", "a-", "-", "a.", ".", "a_", "a/", "/", "A", "é", " ", "a--"),
    **repeated("a", "-", "a.", "a-", "a_", "/a", after="!"),
}
IMAGES: Final = {
    **NAMES,
    **repeated("a:", "a@", "a+", "__", "a__"),
    **repeated("a", "a+", "a.", before="x@", after="!") | repeated("a", before="x@sha256:"),
    **repeated("a", before="x:") | repeated("9", before="a:", after="/b"),
}
ADDRESSES: Final = repeated(":", "1.", "1:", "f", "[", "%", before="") | repeated("a", before="::1%") | DIGITS
HOSTS: Final = {
    **NAMES,
    **ADDRESSES,
    **repeated(MARKS, before="a"),
    "many letters": lambda n: "".join(chr(0x4E00 + at % 20_000) for at in range(n)),
}
URLS: Final = {
    **repeated("/", "../", "a/../", "%", "%zz", "?", "#", "é", "\udcff", "[", ":", "@", "\t", before="/"),
    **repeated(MARKS, "@", ":", "[", before="//a"),
    **repeated(MARKS, "..", "9", before="http://a"),
    "marks in two runs": lambda n: f"//a{MARKS[0] * n}{MARKS[1] * n}",
}
FIELD_PATHS: Final = repeated("']", "['", "a", before="metadata.labels['") | repeated("metadata.labels[", "a", "-")
QUANTITIES: Final = DIGITS | repeated("9", before="1e") | repeated("1.", "Ki", " ", "+")
DURATIONS: Final = DIGITS | repeated("1h", "1.5s", "-", "h", ".") | repeated("9", after="h")
SELECTORS: Final = {
    **repeated(",", "(", ")", ",(", "a,", "a in (b),", "a=", "!", " ", "=", "a", "a "),
    **repeated(" ", before="a=", after="!") | repeated(" ", before="a", after="x") | repeated(" ", after="!"),
    **repeated(" ", before="a in", after="x") | repeated(",", before="a in (", after="x") | repeated("a-", after="-"),
}
YAML: Final = {
    **repeated("- ", "a: ", "? ", "[", "{", "- a\n", "#\n", " ", "\n", "---\n", "--- *a\n", "\t", "'", "%TAG !a! b\n"),
    **repeated(" \n", before="a: |\n") | repeated(" b\n\n", before="a: >\n") | repeated("\\\n ", before='"', after='"'),
    **repeated("9", "1_", "0.", before="a: ") | repeated("%41", before="!<", after="> a"),
    **repeated("a,", before="[" * 60) | repeated("*a,", before="[&a x,", after="]"),
    **repeated("<<: *a\n", before="x: &a {b: c}\ny:\n  z: 1\n"),
    "anchors": lambda n: "".join(f"- &a{at} x\n" for at in range(n)),
    "handles": lambda n: "".join(f"%TAG !a{at}! x\n" for at in range(n)) + "--- a",
    "keys": lambda n: "".join(f"a{at}: b\n" for at in range(n)),
}
JSON: Final = {
    **repeated("{}", "[", "{} --- ", "\\", '{"a":', ' "', ",", "\n", before="{}"),
    **repeated("9", "0.", before='{"a":', after="}") | repeated("[", before='{"a":') | repeated("1,", before='{"a":['),
}
LINES: Final = repeated("\n", "a\n", "\r", " ", "a", "nameserver 1.2.3.4\n", "search a\n", "options a\n")
ENV_FILES: Final = {
    **LINES,
    **repeated("\n", "a\n", "''", "'", before="A='") | repeated("A=''\n", "A='a' #\n", "#\n", "=", " "),
    **repeated(" ", before="A"),
}
LOGS: Final = {
    **LINES,
    **repeated("t stdout F a\n", "t stdout P a\n", "2026-01-01T00:00:00Z stdout F a\n", ":", before="t stdout F:"),
    **repeated("9", before="2026-01-01T00:00:00.", after="Z stdout F a\n"),
}
TIMES_OF_DAY: Final = DIGITS | repeated("9", before="2026-01-01T00:00:00.", after="Z") | repeated("-", "T", ":")
ERRORS: Final = {
    **repeated("//", "//a", "@", "/", "a", "//a@", "/a start ", "` failed: signal: "),
    **repeated('"', "\\", "\n", "\x00", "\u202e"),
    **repeated("a", before="/", after=" start"),
}
KERNEL_TABLES: Final = LINES | repeated("|-- 1\n", "|-- ", "0 0 0 00 9 a\n") | repeated("\n", before="|-- 1.2.3.4\n")
VARINTS: Final[dict[str, Callable[[int], bytes]]] = {
    "endless": lambda n: b"\xff" * n,
    "a number": lambda n: b"\x08" + b"\xff" * n + b"\x01",
    "a field": lambda n: b"\x80" * n + b"\x01",
    "many": lambda n: b"\x08\x01" * n,
    "bytes": lambda n: b"\x12\x00" * n,
}


# --- parsers -----------------------------------------------------------------------------------------------------


class Parser(NamedTuple):
    """A parser whose work is looked at."""

    module: str
    """Path below the root."""
    parse: Callable[[Any], object]
    texts: Mapping[str, Callable[[int], Any]]
    few: int = FEW


HERE: Final = Endpoint(network=NODE, host="10.0.2.100", port=80)
REQUEST: Final = request_of(HTTPGetAction(port=80), HERE, "")
IMAGE: Final = parse_image_reference("quay.io/a/b")
VALUES: Final = {"A": "a"}
WITH_VARIABLE: Final = container("a", env=(EnvVar(name="A"),))
FIELDS: Final = frozenset({"metadata.name"})
RULES: Final = tuple(rule for rule in vars(names).values() if isinstance(rule, names.NameRule))


def environment(env: tuple[EnvVar, ...]) -> object:
    of = pod(container("main", env=env))
    return make_environment(of.spec.containers[0], EnvironmentSources(pod=of))


def doubling(n: int) -> tuple[EnvVar, ...]:
    return tuple(EnvVar(name=f"A{at}", value=f"$(A{at - 1})" * 2 or "x") for at in range(n))


def manifest(**fields: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "a", **fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [main]}}


def read_manifest(of: dict[str, Any]) -> object:
    return list(validate_pod(default_pod(decode_pod(of))))


def in_manifest(text: str) -> None:
    """Wherever a manifest may say anything."""
    for fields in (
        {"image": text},
        {"env": [{"name": text, "value": text}]},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": text}}}]},
        {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": text}}}]},
        {"resources": {"limits": {text: text}}},
        {"ports": [{"containerPort": 1, "name": text, "hostIP": text}]},
        {"livenessProbe": {"httpGet": {"port": text, "host": text, "httpHeaders": [{"name": text, "value": text}]}}},
        {"lifecycle": {"stopSignal": text}},
        {"volumeMounts": [{"name": text, "mountPath": text, "subPath": text}]},
        {text: text},
    ):
        with contextlib.suppress(Exception):
            read_manifest(manifest(**fields))


def many_of_all(n: int) -> dict[str, Any]:
    some = range(n)
    return manifest(
        env=[{"name": f"A{at}", "value": "$(A)"} for at in some],
        ports=[{"containerPort": at % 60_000 + 1, "name": f"p{at}"} for at in some],
        volumeMounts=[{"name": f"v{at}", "mountPath": f"/m{at}"} for at in some],
        livenessProbe={"httpGet": {"port": 1, "httpHeaders": [{"name": f"a{at}", "value": "b"} for at in some]}},
    )


def pull_secret(key: str) -> object:
    auths = {key: {"username": "a"}, f"*.{key}": {"auth": key}}
    data = json.dumps({"auths": auths}).encode("utf-8", "replace")
    logins = read_pull_secret(Secret(type=DOCKER_CONFIG_JSON, data={".dockerconfigjson": data}))
    return logins_for(IMAGE, logins)


def heard(text: str) -> bytes:
    answer = _Answer()
    value = text.encode("utf-8", "replace")
    head = [(b":status", b"200"), (b"content-type", b"application/grpc")]
    status = h2.events.ResponseReceived(stream_id=1, headers=head)
    trailers = h2.events.TrailersReceived(stream_id=1, headers=[(b"grpc-status", value), (b"grpc-message", value)])
    for event in (status, trailers):
        answer.hear(event)
    return answer.message()


def certificate_of(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"


def certificate_dates(pem: bytes) -> object:
    return read_validity(pem)


def watched(text: str) -> None:
    """Byte by byte, without an end and with one."""
    frames, data = WatchFrames(), text.encode(errors="replace")
    for at in range(0, len(data), 7):
        with contextlib.suppress(WatchFormatError):
            frames.feed(data[at : at + 7])


def listed(text: str) -> object:
    return ReflectorState(chance=lambda: 0.0).listed(text.encode(errors="replace"))


def log(text: str) -> bytes:
    renderer = cri_format.LogRenderer(timestamps=True, since=1.0)
    return renderer.render(cri_format.LineCutter().feed(text.encode()))


def of_oci_runtime(text: str) -> object:
    return last_error(text.encode())


def resolv_conf(text: str) -> object:
    return dns.render_resolv_conf(dns.parse_resolv_conf(text))


def field_of(path: str) -> str:
    return downward.field_value(pod(), path)


def secret(text: str) -> object:
    return decode_secret({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": text}})


def exit_code(text: str) -> object:
    causes = [{"reason": EXIT_CODE_CAUSE, "message": text}]
    found = {"status": "Failure", "reason": NON_ZERO_EXIT_CODE, "details": {"causes": causes}}
    return msgspec.convert(found, StreamStatus).exit_code()


BLOCK: Final = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"
CA: Final = ClusterTrustBundleProjection(name="ca", path="ca.pem")


def anchors(text: str) -> object:
    return selected([Bundle(BundleMeta("ca"), BundleSpec("", text))], CA)


def in_single_bytes(frames: bytes) -> object:
    connection = Connection()
    return [list(connection.receive(frames[at : at + 1])) for at in range(len(frames))]


def forwarded(text: str) -> object:
    return port_pairs._port(SynStream(1, (("port", text),)))


def _streams(times: int) -> bytes:
    """One after the other, each reset before the next one."""
    client, found = Connection(client=True), bytearray()
    for _ in range(times):
        stream, frame = client.open((("streamtype", "data"), ("port", "80"), ("requestid", "1")))
        found += frame + client.data(stream, b"x") + client.reset(stream)
    return bytes(found)


SPDY: Final[Mapping[str, Callable[[int], bytes]]] = {
    "streams": _streams,
    "pings": lambda times: Connection(client=True).ping() * times,
    "one frame of data": lambda times: b"\x00\x00\x00\x01\x00" + times.to_bytes(3, "big") + bytes(times),
    "one control frame": lambda times: b"\x80\x03\x00\x63\x00" + times.to_bytes(3, "big") + bytes(times),
}
SECRETS: Final = (blocks_of(Secret(data={"key": b"hunter2", "other": b"a" * 40})),)
CERTIFICATES: Final[dict[str, Callable[[int], bytes]]] = {
    "begins": lambda n: b"-----BEGIN CERTIFICATE-----\n" * n,
    "a text": lambda n: b"-----BEGIN CERTIFICATE-----\n" + b"A" * n,
    "elements": lambda n: certificate_of(b"\x30\x00" * n),
    "an element": lambda n: certificate_of(b"\x30\x83" + n.to_bytes(3, "big") + bytes(n)),
    "fields": lambda n: certificate_of(
        b"\x30\x83" + (5 + 2 * n).to_bytes(3, "big") + b"\x30\x83" + (2 * n).to_bytes(3, "big") + b"\x05\x00" * n
    ),
}
BOOTSTRAP_TOKEN: Final = parse_token("abcdef.0123456789abcdef")


def keeping_ids(text: str) -> object:
    metadata = ObjectMeta(name="a", annotations={USERNS: f"keep-id:{text}"})
    return kept_id(Pod(metadata=metadata, spec=PodSpec(containers=())))


PARSERS: Final[Mapping[str, Parser]] = {
    "texts for people": Parser(
        "ipc/host/text/safe_text.py", safe_text, NAMES | DIGITS | repeated("\x1b", "\u202e", "\udcff")
    ),
    "texts as YAML": Parser(
        "supervisor/cli/printers/yaml_scalars.py",
        lambda text: (written_text.__wrapped__(text), written_lines(f"{text}\n", 2)),
        NAMES | DIGITS | repeated("\x1b", ": ", " #", " ", "1_", "1:1", "\n", " \n", "'", before="0"),
    ),
    "keys in YAML": Parser(
        "supervisor/cli/printers/yaml_keys.py", lambda text: in_order([f"a{text}2", f"a{text}10"]), NAMES | DIGITS
    ),
    "texts without Secrets": Parser(
        "ipc/k8s/podobjects/redaction.py",
        lambda text: redacted(text, SECRETS),
        NAMES | repeated("hunter2", "hunter", "\\x68", "\\u0068", "%68", "\n", "aHVudGVy"),
    ),
    "Secrets to be known by": Parser(
        "ipc/k8s/podobjects/redaction.py",
        lambda text: blocks_of(Secret(data={"key": text.encode(errors="replace")})),
        NAMES | repeated("hunter2"),
    ),
    "journals of ended containers": Parser(
        "supervisor/state/ends_journal.py",
        lambda text: decode_journal(text.encode(errors="replace")),
        NAMES | DIGITS | repeated("\n", "0" * 8 + " \n", "[", '{"uid":'),
    ),
    "UIDs in slices": Parser("ipc/k8s/podresources/pod_cgroups.py", uid_in_name, NAMES | repeated("pod", "\ud800")),
    "references": Parser("workers/env/expansion.py", lambda text: expand(text, VALUES), REFERENCES),
    "subPathExpr": Parser("workers/env/expansion.py", lambda text: expand_sub_path_expr(text, VALUES), REFERENCES),
    "words": Parser("workers/env/expansion.py", lambda text: expand_all([text] * 9, VALUES), REFERENCES),
    "a probe's command": Parser(
        "workers/prober/exec.py", lambda text: expanded_command([text], WITH_VARIABLE), REFERENCES
    ),
    "variables": Parser("workers/env/environment.py", environment, {"doubling": doubling}),
    "images": Parser("workers/kubecontainer/image_reference.py", parse_image_reference, IMAGES),
    "images, in the API": Parser("ipc/k8s/api/image.py", parse_image_name, IMAGES),
    "users of images": Parser("workers/specgen/container_user.py", parse_image_user, NAMES | DIGITS),
    "kept ids": Parser(
        "ipc/k8s/api/podman_annotations.py", keeping_ids, DIGITS | repeated("uid=1,", "keep-id:", ",", "=")
    ),
    "accounts of images": Parser(
        "workers/volumemanager/first_owner.py",
        lambda text: first_owner("7", ImageAccounts(text, "")),
        LINES | DIGITS | repeated("a:x:1:1:", ":", "a:x:9:1\n"),
    ),
    "signals": Parser("workers/proc/signal_names.py", signal_name, NAMES | DIGITS),
    "signals of manifests": Parser(
        "workers/proc/signal_names.py", signal_number, DIGITS | repeated("9", "+", before="SIGRTMIN+")
    ),
    "label selectors": Parser("workers/api_server/store/selectors.py", selectors.parse_label_selector, SELECTORS, 60),
    "field terms": Parser(
        "workers/api_server/store/field_terms.py",
        lambda text: [field_terms.split_term(term) for term in field_terms.split_terms(text)],
        repeated("\\=", "\\\\", ",", "a\\,", "a", "="),
    ),
    "values of field terms": Parser(
        "workers/api_server/store/field_terms.py",
        field_terms.unescaped,
        repeated("\\=", "\\\\", ",", "a\\,", "a", "="),
    ),
    "field selectors": Parser(
        "workers/api_server/store/selectors.py",
        lambda text: selectors.parse_field_selector(text, FIELDS),
        SELECTORS,
        60,
    ),
    "long selectors": Parser("workers/api_server/store/selectors.py", selectors.parse_label_selector, SELECTORS),
    "numbers of queries": Parser(
        "workers/api_server/core/query.py", lambda text: query.integer({"a": text}, "a"), DIGITS
    ),
    "pod addresses": Parser("ipc/k8s/network/pod_ips.py", lambda text: sort_pod_ips([text]), ADDRESSES),
    "leading zeros": Parser(
        "ipc/host/text/ip_address.py",
        without_leading_zeros,
        repeated("0", "1.", ":0", "0.0.0.", before="") | repeated("0", "9", before="1.2.3."),
    ),
    "addresses": Parser("ipc/k8s/api/validation/names.py", names.ip_problem, ADDRESSES),
    "names": Parser("ipc/k8s/api/validation/names.py", lambda text: [rule.problem(text) for rule in RULES], NAMES),
    "qualified names": Parser("ipc/k8s/api/validation/names.py", names.qualified_name_problem, NAMES),
    "hosts": Parser("workers/podhttp/endpoints.py", ascii_host, HOSTS),
    "short hosts": Parser("workers/podhttp/endpoints.py", ascii_host, HOSTS, 30),
    "paths of requests": Parser(
        "workers/podhttp/request.py", lambda text: request_of(HTTPGetAction(port=80, path=text), HERE, ""), URLS
    ),
    "redirects": Parser("workers/podhttp/request.py", lambda text: redirected(REQUEST, text), URLS),
    "registries": Parser(
        "workers/images/credentials.py", pull_secret, HOSTS | URLS | repeated("*", "*a", "[", "?", "[!")
    ),
    "systemd's watchdog": Parser(
        "supervisor/processes/sd_notify.py", lambda text: watchdog_timeout_s({"WATCHDOG_USEC": text}, 1), DIGITS
    ),
    "areas of the log": Parser("ipc/host/log/verbosity.py", area_problem, NAMES | URLS),
    "durations": Parser("ipc/host/text/durations.py", durations.parse_duration, DURATIONS),
    "quantities": Parser("ipc/k8s/api/quantity.py", parse_quantity, QUANTITIES),
    "rates": Parser("ipc/k8s/network/bandwidth.py", bandwidth_problem, QUANTITIES),
    "times": Parser("ipc/host/clock.py", clock.parse_rfc3339, TIMES_OF_DAY),
    "Go's quotes": Parser("ipc/host/text/gofmt.py", quoted, ERRORS),
    "errors of manifests": Parser(
        "ipc/k8s/api/errors.py",
        lambda text: api_errors.redacted(api_errors.FieldError("a", f'Invalid value: "{text}')),
        ERRORS,
    ),
    "options of logs": Parser(
        "workers/api_server/kubelet/container_logs.py",
        lambda text: kubelet_log_options({"tailLines": text}, 0.0),
        DIGITS,
    ),
    "queries of the journal": Parser(
        "workers/api_server/kubelet/node_logs.py", lambda text: journal_query([text], {}), NAMES | DIGITS
    ),
    "log lines": Parser("workers/logs/cri_format.py", log, LOGS),
    "files of variables": Parser("workers/env/env_files.py", parse_env_file, ENV_FILES),
    "resolv.conf": Parser("workers/network/dns.py", resolv_conf, LINES),
    "fields": Parser("workers/env/downward.py", field_of, FIELD_PATHS),
    "maps as text": Parser("workers/env/downward.py", lambda text: downward.format_map({"a": text}), ERRORS),
    "paths of files": Parser("workers/volumemanager/plugins/payload.py", path_problem, NAMES | URLS),
    "messages of gRPC": Parser("workers/prober/grpc.py", decode_status, VARINTS),
    "headers of gRPC": Parser("workers/prober/grpc_call.py", heard, DIGITS | URLS),
    "URLs of Podman": Parser(
        "ipc/host/text/userinfo.py", without_userinfo, URLS | ERRORS | repeated("//a@sha256:", "@sha1:")
    ),
    "logs of an OCI runtime": Parser("workers/exec/child.py", of_oci_runtime, JSON),
    "errors of Podman": Parser(
        "workers/libpod/failures.py",
        lambda text: failures.call_error("a", 500, json.dumps({"cause": text, "message": text}).encode()),
        ERRORS,
    ),
    "labels": Parser(
        "workers/kubecontainer/labels.py", lambda text: labels.read_container({labels.ATTEMPT: text}), DIGITS
    ),
    "IPv4 of the kernel": Parser("ipc/host/network_addresses.py", network_addresses.parse_fib_trie, KERNEL_TABLES),
    "IPv6 of the kernel": Parser("ipc/host/network_addresses.py", network_addresses.parse_if_inet6, KERNEL_TABLES),
    "YAML": Parser(
        "supervisor/sources/documents/scalars.py", lambda text: read_documents(text.encode()), YAML | DIGITS
    ),
    "aliases": Parser(
        "supervisor/sources/objects/apart.py",
        lambda text: is_heavy(text.encode()[:LIGHT_BYTES]),
        YAML | repeated("*", " *", "[*", "-*", "\n", before="& "),
    ),
    "JSON": Parser("supervisor/sources/documents/json_text.py", lambda text: read_documents(text.encode()), JSON),
    "texts of manifests": Parser("ipc/k8s/api/validation/pods/env.py", in_manifest, NAMES | FIELD_PATHS | DIGITS),
    "items of manifests": Parser("ipc/k8s/api/decode.py", read_manifest, {"of each list": many_of_all}, 200),
    "base64": Parser("ipc/k8s/api/decode.py", secret, repeated("A", "A=", "=", "\n", "é") | repeated("A", after="!")),
    "bounds of node affinity": Parser(
        "ipc/k8s/scheduling/node_affinity.py", lambda text: node_affinity._is_greater(text, [text]), DIGITS
    ),
    "frames of SPDY": Parser("workers/spdy/decoder.py", in_single_bytes, SPDY, 200),
    "ports of SPDY": Parser("workers/api_server/streams/port_pairs.py", forwarded, DIGITS),
    "exit codes": Parser("ipc/link/wire/stream_channels.py", exit_code, DIGITS),
    "paths of findings": Parser("ipc/k8s/api/support/cluster.py", is_of_cluster, repeated("[1", "[1]", "[", "1", "]")),
    "trust anchors": Parser(
        "workers/cluster/objects/trust_bundles.py", anchors, repeated("-----BEGIN CERTIFICATE-----", "-", "A", BLOCK)
    ),
    "dates of certificates": Parser("workers/certificates/validity.py", certificate_dates, CERTIFICATES),
    "times to wait": Parser("workers/kubeclient/retry.py", retry_after_s, DIGITS),
    "events of a watch": Parser("workers/kubeclient/watch_frames.py", watched, JSON | LINES),
    "lists of a cluster": Parser("workers/kubeclient/reflector_state.py", listed, JSON),
    "signed kubeconfigs": Parser(
        "supervisor/client/bootstrap_token.py", lambda text: is_signed(b"a", text, BOOTSTRAP_TOKEN), NAMES
    ),
}


@pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)
def test_work_grows_with_the_text_and_no_faster(parser: Parser) -> None:
    found = {name: growth(parser.parse, make, parser.few) for name, make in parser.texts.items()}
    assert {name: round(times) for name, times in found.items() if times >= MAX_GROWTH} == {}


# --- nobody is forgotten -----------------------------------------------------------------------------------------

RISKY: Final = frozenset({"re.compile", "re.fullmatch", "int", "Fraction", "fnmatch.fnmatchcase", "urlsplit"})
"""Calls that may take more than linear time, or fail over long digits: a module with one of these has a parser above,
or a reason below."""
NO_PARSER: Final[Mapping[str, tuple[str, ...]]] = {
    "the user's own configuration, arguments and host": (
        "supervisor/client/authority_pin.py",
        "ipc/k8s/kubeconfig/decode.py",
        "ipc/k8s/nodestatus/allocatable.py",
        "ipc/k8s/nodestatus/node_ip.py",
        "supervisor/cli/",
        "supervisor/client/cluster.py",
        "supervisor/client/errors.py",
        "supervisor/config/cdi_specs.py",
        "supervisor/config/resolution/config_file.py",
        "supervisor/config/resolution/decode_errors.py",
        "supervisor/doctor/",
        "supervisor/load_test/",
        "supervisor/admission/node_resources.py",
        "ipc/k8s/eviction/thresholds.py",
        "supervisor/config/resolution/resolved_settings.py",
        "supervisor/config/resolution/server_section.py",
        "supervisor/config/settings.py",
        "supervisor/config/sysctl_allowlist.py",
        "supervisor/managers/node_shutdown.py",
        "supervisor/control/logind.py",
        "workers/kubeclient/client.py",
        "ipc/k8s/network/network_programs.py",
    ),
    "the kernel's texts": (
        "ipc/host/file_systems.py",
        "supervisor/processes/scheduling.py",
        "workers/podman_files/orphaned_monitors.py",
        "workers/proc/process_limit.py",
        "workers/proc/rlimit_tag.py",
        "workers/exec/direct.py",
        "workers/proc/cgroups.py",
        "workers/proc/procfs.py",
        "workers/proc/usage.py",
        "workers/stats/",
        "workers/eviction/node_signals.py",
        "workers/userns/steps/unlinked_files.py",
        "workers/nodestatus/machine.py",
    ),
    "numbers, no texts": (
        "ipc/host/pause_process.py",
        "supervisor/sources/directory_watch.py",
        "workers/api_server/kubelet/pages.py",
        "workers/api_server/handlers/node_watch.py",
        "workers/api_server/handlers/statistics.py",
        "workers/api_server/metrics/exposition.py",
        "workers/api_server/printers/events.py",
        "ipc/host/text/human.py",
        "workers/api_server/server.py",
        "workers/dialer/client.py",
        "workers/exec/runner.py",
        "workers/userns/standing.py",
        "workers/fs/growth_watch.py",
        "workers/kuberuntime/bandwidth.py",
        "workers/eviction/manager.py",
        "ipc/k8s/podresources/swap.py",
        "workers/eviction/pod_usage.py",
        "ipc/k8s/eviction/observations.py",
        "supervisor/eviction/messages.py",
        "workers/specgen/oom_score.py",
        "workers/pod_worker.py",
        "workers/containers/runs.py",
        "workers/volumemanager/plugins/empty_dir.py",
        "supervisor/state/ended_containers_file.py",
    ),
    "names of files, which have 255 bytes, and of names the first 200": (
        "supervisor/sources/applied.py",
        "workers/logs/gc.py",
        "workers/logs/layout.py",
        "workers/logs/rotated_names.py",
        "workers/logs/termination_message.py",
        "workers/volumemanager/plugins/atomic_writer.py",
    ),
    "numbers of at most 20 digits": ("workers/cluster/node/lease.py",),
    "at most 64 bytes of a file of state": (
        "supervisor/record/node_events.py",
        "supervisor/state/directory_owner.py",
    ),
    "a file of our own": ("workers/volumemanager/plugins/ownership.py",),
    "one line of the user's own podman": ("supervisor/config/containers_conf.py",),
    "files of Podman and its monitors": (
        "workers/podman_files/container_process.py",
        "workers/podman_files/monitor.py",
        "workers/podman_files/started_look.py",
    ),
    "expressions of one length": ("workers/images/pull_records.py", "workers/kubecontainer/naming.py"),
}


def risky_modules() -> Iterator[str]:
    for file, tree in trees_with(*(f"{name}(" for name in RISKY)):
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        if any(ast.unparse(call.func) in RISKY for call in calls):
            yield str(file.relative_to(ROOT))


def test_every_module_that_may_be_slow_has_a_parser_here_or_a_reason() -> None:
    reasons = tuple(path for paths in NO_PARSER.values() for path in paths)
    risky = set(risky_modules())
    assert {path for path in risky if not path.startswith(reasons)} <= {parser.module for parser in PARSERS.values()}
    assert [path for path in reasons if not any(module.startswith(path) for module in risky)] == []
    assert [parser.module for parser in PARSERS.values() if not (ROOT / parser.module).exists()] == []
