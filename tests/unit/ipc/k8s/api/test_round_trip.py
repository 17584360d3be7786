"""Pods through JSON and through msgpack, and the guarantees that hold for every pod the decoder accepts."""

import importlib
import inspect
import json
import pkgutil

import msgspec
import pytest
from hypothesis import given

import ipc.k8s.api.v1
from ipc.k8s.api.decode import decode_pod, encode_pod
from ipc.k8s.api.defaults import default_pod
from ipc.k8s.api.support.findings import unsupported_fields
from ipc.k8s.api.v1.base import ApiStruct
from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import PodCondition, PodStatus
from ipc.k8s.api.validation.pods.pod import validate_pod
from tests.support.api_manifests import manifest, pods

MODULES = [
    importlib.import_module(f"ipc.k8s.api.v1.{module.name}") for module in pkgutil.iter_modules(ipc.k8s.api.v1.__path__)
]
EVERY_TYPE = [
    value
    for module in MODULES
    for value in vars(module).values()
    if inspect.isclass(value) and issubclass(value, ApiStruct) and value.__module__ == module.__name__
]


@given(pods())
def test_json_gives_the_same_pod_back(pod: Pod) -> None:
    assert decode_pod(json.loads(encode_pod(pod))) == pod


@given(pods())
def test_msgpack_needs_no_hooks(pod: Pod) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(pod), type=Pod) == pod


@given(pods())
def test_every_decoded_pod_can_be_defaulted_validated_and_judged(pod: Pod) -> None:
    defaulted = default_pod(pod)
    assert default_pod(defaulted) == defaulted
    validate_pod(pod)
    validate_pod(defaulted)
    assert set(unsupported_fields(pod)) <= set(unsupported_fields(defaulted))
    assert decode_pod(json.loads(encode_pod(defaulted))) == defaulted


@pytest.mark.parametrize("struct", EVERY_TYPE, ids=lambda struct: struct.__name__)
def test_types_are_frozen_keyword_only_and_strict(struct: type[ApiStruct]) -> None:
    config = struct.__struct_config__
    assert (config.frozen, config.forbid_unknown_fields, config.omit_defaults) == (True, True, True)
    with pytest.raises(TypeError):
        struct("positional")


def test_json_leaves_out_what_go_leaves_out_and_writes_what_kubectl_shows() -> None:
    pod = decode_pod(manifest(container={"workingDir": "", "env": [], "tty": False}))
    assert json.loads(encode_pod(pod)) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "main", "image": "busybox:1.36", "resources": {}}]},
        "status": {},
    }


def test_initialisms_are_written_as_go_writes_them() -> None:
    fields = {"hostPID": True, "hostIPC": True, "setHostnameAsFQDN": True}
    ports = [{"containerPort": 1, "hostIP": "::1"}]
    pod = decode_pod(manifest(spec=fields, container={"ports": ports}))
    assert (pod.spec.host_pid, pod.spec.host_ipc, pod.spec.set_hostname_as_fqdn) == (True, True, True)
    assert pod.spec.containers[0].ports[0].host_ip == "::1"


def test_a_status_has_kubectls_shape() -> None:
    status = PodStatus(phase="Running", conditions=(PodCondition(type="Ready", status="True"),), pod_ip="10.0.0.1")
    pod = msgspec.structs.replace(decode_pod(manifest()), status=status)
    shown = json.loads(msgspec.json.encode(pod))
    assert shown["status"] == {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}],
        "podIP": "10.0.0.1",
    }
    assert msgspec.json.decode(msgspec.json.encode(shown), type=Pod) == pod


def test_an_event_has_kubectls_shape() -> None:
    event = Event(
        metadata=ObjectMeta(name="web.1", namespace="default"),
        involved_object=ObjectReference(kind="Pod", name="web"),
        reason="Started",
        type="Normal",
        count=2,
        last_timestamp="2026-01-02T03:04:05Z",
    )
    assert json.loads(msgspec.json.encode(event)) == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "web"},
        "reason": "Started",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 2,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }
