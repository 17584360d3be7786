"""One container of `describe pod` (kubectl pkg/describe, describeContainers).

Ours, because kubectl leaves them out: the message of a container that waits, its own restart policy and rules, its
hooks and its stop signal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from ipc.host.text.gofmt import quoted
from ipc.host.text.json_types import Json
from ipc.k8s.network.ports import join_host_port
from ipc.k8s.resources.times import NONE, local_time
from supervisor.cli.printers.usage import cores, mebibytes, rate_of, working_set_of

_L1: Final = "  "
_L2: Final = "    "
_L3: Final = "      "
_PROBES: Final = (("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe"))
_HOOKS: Final = (("Post Start", "postStart"), ("Pre Stop", "preStop"))
_OPERATORS: Final = {"In": "on exit code", "NotIn": "on every exit code but"}
_LIMITS_OF_THE_NODE: Final = ("limits.cpu", "limits.memory")
_KEYED: Final = re.compile(r"metadata\.(?P<kind>labels|annotations)\['(?P<key>[^']+)'\]")
_FIELDS: Final[Mapping[str, Callable[[Json], str]]] = {
    "metadata.name": lambda pod: pod["metadata"].get("name", ""),
    "metadata.namespace": lambda pod: pod["metadata"].get("namespace", ""),
    "metadata.uid": lambda pod: pod["metadata"].get("uid", ""),
}
"""Field paths that a description resolves; kubectl too leaves those empty that only the kubelet knows."""


def describe_container(container: Json, status: Json | None, pod: Json, usage: Json | None = None) -> Iterator[str]:
    """Lines of a container, from its name to its mounts; ``status`` is None before the first report. ``usage``: its
    newest sample, None when nobody asked for it."""
    yield f"{_L1}{container['name']}:"
    yield from _basics(container, status)
    yield from _words("Command", container.get("command", ()))
    yield from _words("Args", container.get("args", ()))
    if status is not None:
        yield from _state_lines("State", status.get("state", {}))
        if status.get("lastState", {}).get("terminated"):
            yield from _state_lines("Last State", status["lastState"])
        yield f"{_L2}Ready:\t{bool(status.get('ready'))}"
        yield f"{_L2}Restart Count:\t{status.get('restartCount', 0)}"
    yield from describe_resources(container.get("resources", {}), _L2)
    if usage is not None and status is not None and status.get("state", {}).get("running") is not None:
        yield from _usage(usage)
    yield from _restarts(container)
    for title, field in _PROBES:
        if container.get(field):
            yield f"{_L2}{title}:\t{describe_probe(container[field])}"
    yield from _hooks(container.get("lifecycle", {}))
    yield from _env_from(container.get("envFrom", ()))
    yield from _env(container.get("env", ()), container, pod)
    yield from _mounts(container)


def _usage(sample: Json) -> Iterator[str]:
    """CPU and memory, to be read beside limits and requests."""
    yield f"{_L2}Usage:"
    yield f"{_L3}cpu:\t{cores(rate_of(sample))}"
    yield f"{_L3}memory:\t{mebibytes(working_set_of(sample))}"


def _basics(container: Json, status: Json | None) -> Iterator[str]:
    if status is not None:
        yield f"{_L2}Container ID:\t{status.get('containerID', '')}"
    yield f"{_L2}Image:\t{container.get('image', '')}"
    if status is not None:
        yield f"{_L2}Image ID:\t{status.get('imageID', '')}"
    for title, field in (("Port", "containerPort"), ("Host Port", "hostPort")):
        ports = container.get("ports", ())
        yield f"{_L2}{title}{'s' if len(ports) > 1 else ''}:\t{port_texts(ports, field) or NONE}"
    profile = container.get("securityContext", {}).get("seccompProfile", {})
    if profile:
        yield f"{_L2}SeccompProfile:\t{profile.get('type', '')}"
    if profile.get("localhostProfile"):
        yield f"{_L3}LocalhostProfile:\t{profile['localhostProfile']}"


def port_texts(ports: Sequence[Json], field: str) -> str:
    """All ports in one cell, ``80/TCP (web), 53/UDP``; empty without any."""
    return ", ".join(_port(port, field) for port in ports)


def _port(port: Json, field: str) -> str:
    text = f"{port.get(field, 0)}/{port.get('protocol', 'TCP')}"
    return f"{text} ({port['name']})" if port.get("name") else text


def _words(title: str, words: Sequence[str]) -> Iterator[str]:
    if words:
        yield f"{_L2}{title}:"
    yield from (f"{_L3}{line}" for word in words for line in word.split("\n"))


def _state_lines(title: str, state: Json) -> Iterator[str]:
    if state.get("running") is not None:
        yield f"{_L2}{title}:\tRunning"
        yield f"{_L3}Started:\t{local_time(state['running'].get('startedAt'))}"
    elif state.get("terminated"):
        yield from _terminated(title, state["terminated"])
    else:
        yield f"{_L2}{title}:\tWaiting"
        yield from _why(state.get("waiting") or {})


def _why(state: Json) -> Iterator[str]:
    for name in ("reason", "message"):
        if state.get(name):
            yield f"{_L3}{name.capitalize()}:\t{state[name]}"


def _terminated(title: str, ended: Json) -> Iterator[str]:
    yield f"{_L2}{title}:\tTerminated"
    yield from _why(ended)
    yield f"{_L3}Exit Code:\t{ended.get('exitCode', 0)}"
    if ended.get("signal"):
        yield f"{_L3}Signal:\t{ended['signal']}"
    yield f"{_L3}Started:\t{local_time(ended.get('startedAt'))}"
    yield f"{_L3}Finished:\t{local_time(ended.get('finishedAt'))}"


def describe_resources(resources: Json, indent: str) -> Iterator[str]:
    """Limits and requests of a container or of a pod."""
    for title in ("limits", "requests"):
        amounts = resources.get(title, {})
        if amounts:
            yield f"{indent}{title.capitalize()}:"
        yield from (f"{indent}{_L1}{name}:\t{amounts[name]}" for name in sorted(amounts))


def _restarts(container: Json) -> Iterator[str]:
    if container.get("restartPolicy"):
        yield f"{_L2}Restart Policy:\t{container['restartPolicy']}"
    rules = container.get("restartPolicyRules", ())
    if rules:
        yield f"{_L2}Restart Rules:"
    for rule in rules:
        codes = rule.get("exitCodes") or {}
        values = ", ".join(map(str, codes.get("values", ())))
        yield f"{_L3}{rule.get('action', '')} {_OPERATORS.get(codes.get('operator', ''), '')} {values}"


def _hooks(lifecycle: Json) -> Iterator[str]:
    for title, field in _HOOKS:
        if lifecycle.get(field):
            yield f"{_L2}{title}:\t{_action(lifecycle[field])}"
    if lifecycle.get("stopSignal"):
        yield f"{_L2}Stop Signal:\t{lifecycle['stopSignal']}"


def describe_probe(probe: Json) -> str:
    """One line (describe.go, DescribeProbe). Absent numbers are Kubernetes' defaults."""
    numbers = (
        f"delay={probe.get('initialDelaySeconds', 0)}s timeout={probe.get('timeoutSeconds', 1)}s"
        f" period={probe.get('periodSeconds', 10)}s #success={probe.get('successThreshold', 1)}"
        f" #failure={probe.get('failureThreshold', 3)}"
    )
    return f"{_action(probe)} {numbers}"


def _action(handler: Json) -> str:
    """Action of a probe or a hook, as one text."""
    if handler.get("exec"):
        return f"exec [{' '.join(handler['exec'].get('command', ()))}]"
    if handler.get("sleep"):
        return f"sleep {handler['sleep'].get('seconds', 0)}s"
    if handler.get("httpGet"):
        get = handler["httpGet"]
        path = get.get("path", "")
        scheme, host = get.get("scheme", "HTTP").lower(), get.get("host", "")
        return f"http-get {scheme}://{join_host_port(host, get['port'])}{path if path[:1] == '/' else '/' + path}"
    if handler.get("tcpSocket"):
        return f"tcp-socket {handler['tcpSocket'].get('host', '')}:{handler['tcpSocket']['port']}"
    if handler.get("grpc"):
        return f"grpc <pod>:{handler['grpc']['port']} {handler['grpc'].get('service') or ''}"
    return "unknown"


def _env_from(sources: Sequence[Json]) -> Iterator[str]:
    if sources:
        yield f"{_L2}Environment Variables from:"
    for source in sources:
        kind, ref = (
            ("ConfigMap", source["configMapRef"]) if "configMapRef" in source else ("Secret", source["secretRef"])
        )
        prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
        yield f"{_L3}{ref.get('name', '')}\t{kind}{prefix}\tOptional: {_bool(ref)}"


def _env(variables: Sequence[Json], container: Json, pod: Json) -> Iterator[str]:
    yield f"{_L2}Environment:" + ("" if variables else f"\t{NONE}")
    for variable in variables:
        if variable.get("valueFrom"):
            yield f"{_L3}{variable['name']}:\t{_value_from(variable['valueFrom'], container, pod)}"
            continue
        head, *tail = variable.get("value", "").split("\n")
        yield f"{_L3}{variable['name']}:\t{head}"
        yield from (f"{_L3}\t{line}" for line in tail)


def _value_from(source: Json, container: Json, pod: Json) -> str:
    """Text that stands for the value of a variable; a Secret's value is never in it."""
    if "fieldRef" in source:
        ref = source["fieldRef"]
        return f"{_field(pod, ref['fieldPath'])} ({ref.get('apiVersion', 'v1')}:{ref['fieldPath']})"
    if "resourceFieldRef" in source:
        return _resource(source["resourceFieldRef"], container)
    if "fileKeyRef" in source:
        ref = source["fileKeyRef"]
        where = f"in file '{ref['path']}' of volume '{ref['volumeName']}'"
        return f"<set to the key '{ref['key']}' {where}>\tOptional: {_bool(ref)}"
    for field, words in (("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")):
        if field in source:
            ref = source[field]
            return f"<set to the key '{ref['key']}' {words} '{ref.get('name', '')}'>\tOptional: {_bool(ref)}"
    return ""


def _resource(ref: Json, container: Json) -> str:
    """As kubectl has it: of this very container, whatever the reference names."""
    from ipc.k8s.api.quantity import in_units, parse_quantity  # the API's types take longer to load than all of this

    kind, _, name = ref["resource"].partition(".")
    amount = parse_quantity(container.get("resources", {}).get(kind, {}).get(name, 0))
    reported = str(in_units(amount, parse_quantity(ref.get("divisor") or 0)))
    if reported == "0" and ref["resource"] in _LIMITS_OF_THE_NODE:
        reported = "node allocatable"
    return f"{reported} ({ref['resource']})"


def _field(pod: Json, path: str) -> str:
    keyed = _KEYED.fullmatch(path)
    if keyed:
        return str(pod["metadata"].get(keyed["kind"], {}).get(keyed["key"], ""))
    return _FIELDS[path](pod) if path in _FIELDS else ""


def _bool(ref: Json) -> str:
    return str(bool(ref.get("optional"))).lower()


def _mounts(container: Json) -> Iterator[str]:
    mounts = sorted(container.get("volumeMounts", ()), key=lambda m: str(m["mountPath"]))
    yield f"{_L2}Mounts:" + ("" if mounts else f"\t{NONE}")
    for mount in mounts:
        flags = "ro" if mount.get("readOnly") else "rw"
        flags += f",path={quoted(mount['subPath'])}" if mount.get("subPath") else ""
        yield f"{_L3}{mount['mountPath']} from {mount['name']} ({flags})"
    devices = container.get("volumeDevices", ())
    if devices:
        yield f"{_L2}Devices:"
    yield from (f"{_L3}{device['devicePath']} from {device['name']}" for device in devices)
