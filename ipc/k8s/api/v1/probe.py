"""Probes, lifecycle hooks and the handlers they share. All durations are whole seconds."""

from typing import Literal

from ipc.k8s.api.v1.base import ApiStruct, Empty, Int32, Int64, IntOrString

URIScheme = Literal["HTTP", "HTTPS"]


class ExecAction(ApiStruct, frozen=True, kw_only=True):
    """Run a command in the container; exit status 0 is success."""

    command: tuple[str, ...] = ()


class HTTPHeader(ApiStruct, frozen=True, kw_only=True):
    """One request header."""

    name: str
    value: str


class HTTPGetAction(ApiStruct, frozen=True, kw_only=True):
    """An HTTP GET; `port` is a number or the name of a container port."""

    path: str = ""
    port: IntOrString
    host: str = ""
    scheme: URIScheme | Empty = ""
    http_headers: tuple[HTTPHeader, ...] = ()
    protocol: str | None = None
    """Alpha in 1.37 (HTTPProbeProtocol)."""


class TCPSocketAction(ApiStruct, frozen=True, kw_only=True):
    """A TCP connect."""

    port: IntOrString
    host: str = ""


class GRPCAction(ApiStruct, frozen=True, kw_only=True):
    """A gRPC health check."""

    port: Int32
    service: str | None = None
    mode: str | None = None
    """Alpha in 1.37 (GRPCContainerProbeTLS)."""


class SleepAction(ApiStruct, frozen=True, kw_only=True):
    """Wait that many seconds."""

    seconds: Int64


class ProbeHandler(ApiStruct, frozen=True, kw_only=True):
    """Exactly one way to probe."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None


class Probe(ProbeHandler, frozen=True, kw_only=True):
    """A probe: its handler (inherited) and its timing in seconds and counts."""

    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 0
    period_seconds: Int32 = 0
    success_threshold: Int32 = 0
    failure_threshold: Int32 = 0
    termination_grace_period_seconds: Int64 | None = None


class LifecycleHandler(ApiStruct, frozen=True, kw_only=True):
    """Exactly one thing to do."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(ApiStruct, frozen=True, kw_only=True):
    """Hooks around the life of a container, and its stop signal."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None
