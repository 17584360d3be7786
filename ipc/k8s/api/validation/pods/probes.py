"""Probes, lifecycle hooks and their handlers.

Source: pkg/apis/core/validation validateProbe, validateHandler, validateLifecycle, validateSleepAction.
A number of 0 that has a default stands for the default, so both a defaulted and a plain pod can be checked.
"""

from typing import Final

from ipc.k8s.api.errors import forbidden, invalid, not_supported, required
from ipc.k8s.api.v1.base import IntOrString
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.probe import (
    ExecAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Probe,
    ProbeHandler,
    TCPSocketAction,
)
from ipc.k8s.api.validation.checks import Errors, at_least, chosen, exactly_one, in_range, indexed, well_formed
from ipc.k8s.api.validation.names import HTTP_HEADER, PORT_NAME
from ipc.k8s.network.ports import MAX_PORT

# fmt: off
_PLAIN_SIGNALS: Final = (
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL",
    "SIGINT", "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT",
    "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU",
    "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ", "SIGRTMIN", "SIGRTMAX",
)
# fmt: on
_REAL_TIME_SIGNALS: Final = (
    *(f"SIGRTMIN+{n}" for n in range(1, 16)),
    *(f"SIGRTMAX-{n}" for n in range(1, 15)),
)
STOP_SIGNALS: Final = frozenset((*_PLAIN_SIGNALS, *_REAL_TIME_SIGNALS))


def validate_probes(container: Container, path: str) -> Errors:
    """The three probes of a container that may have them."""
    for name, probe in (("livenessProbe", container.liveness_probe), ("startupProbe", container.startup_probe)):
        if probe is not None:
            yield from _probe(probe, f"{path}.{name}")
            yield from _one_success(probe, f"{path}.{name}.successThreshold")
    if container.readiness_probe is not None:
        yield from _probe(container.readiness_probe, f"{path}.readinessProbe")
        if container.readiness_probe.termination_grace_period_seconds is not None:
            detail = "may not be set: a failed readiness probe stops nothing"
            yield forbidden(f"{path}.readinessProbe.terminationGracePeriodSeconds", detail)


def _one_success(probe: Probe, path: str) -> Errors:
    if probe.success_threshold > 1:
        yield invalid(path, probe.success_threshold, "must be 1")


def _probe(probe: Probe, path: str) -> Errors:
    yield from exactly_one(path, chosen(probe, ProbeHandler), "a handler: exec, httpGet, tcpSocket or grpc")
    yield from at_least(f"{path}.initialDelaySeconds", probe.initial_delay_seconds, 0)
    yield from at_least(f"{path}.timeoutSeconds", probe.timeout_seconds, 0)
    yield from at_least(f"{path}.periodSeconds", probe.period_seconds, 0)
    yield from at_least(f"{path}.successThreshold", probe.success_threshold, 0)
    yield from at_least(f"{path}.failureThreshold", probe.failure_threshold, 0)
    yield from at_least(f"{path}.terminationGracePeriodSeconds", probe.termination_grace_period_seconds, 1)
    yield from _handler(probe, path)
    if probe.grpc is not None:
        yield from in_range(f"{path}.grpc.port", probe.grpc.port, 1, MAX_PORT)


def validate_lifecycle(lifecycle: Lifecycle, grace_period_s: int, os_name: str, path: str) -> Errors:
    """Hooks and stop signal of a container; `grace_period_s` is the pod's, `os_name` is "" when the pod names none."""
    for name, hook in (("postStart", lifecycle.post_start), ("preStop", lifecycle.pre_stop)):
        if hook is not None:
            yield from _hook(hook, grace_period_s, f"{path}.{name}")
    if lifecycle.stop_signal is None:
        return
    if not os_name:
        yield forbidden(f"{path}.stopSignal", "may only be set together with spec.os.name")
    elif lifecycle.stop_signal not in STOP_SIGNALS:
        yield not_supported(f"{path}.stopSignal", lifecycle.stop_signal, ["SIGTERM", "SIGINT", "SIGRTMIN+3", "…"])


def _hook(hook: LifecycleHandler, grace_period_s: int, path: str) -> Errors:
    names = chosen(hook, LifecycleHandler)
    yield from exactly_one(path, names, "a handler: exec, httpGet, tcpSocket or sleep")
    yield from _handler(hook, path)
    if hook.sleep is not None and not 0 <= hook.sleep.seconds <= grace_period_s:
        detail = f"must be between 0 and the pod's terminationGracePeriodSeconds ({grace_period_s}), inclusive"
        yield invalid(f"{path}.sleep.seconds", hook.sleep.seconds, detail)


def _handler(handler: Probe | LifecycleHandler, path: str) -> Errors:
    if handler.exec is not None:
        yield from _exec(handler.exec, f"{path}.exec")
    if handler.http_get is not None:
        yield from _http_get(handler.http_get, f"{path}.httpGet")
    if handler.tcp_socket is not None:
        yield from _tcp_socket(handler.tcp_socket, f"{path}.tcpSocket")


def _exec(action: ExecAction, path: str) -> Errors:
    if not action.command:
        yield required(f"{path}.command")


def _http_get(action: HTTPGetAction, path: str) -> Errors:
    yield from _port(action.port, f"{path}.port")
    for below, header in indexed(f"{path}.httpHeaders", action.http_headers):
        yield from well_formed(f"{below}.name", header.name, HTTP_HEADER.problem)


def _tcp_socket(action: TCPSocketAction, path: str) -> Errors:
    yield from _port(action.port, f"{path}.port")


def _port(port: IntOrString, path: str) -> Errors:
    if isinstance(port, int):
        yield from in_range(path, port, 1, MAX_PORT)
    else:
        yield from well_formed(path, port, PORT_NAME.problem)
