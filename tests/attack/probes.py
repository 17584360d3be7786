"""Attacks by what answers probes and hooks: commands and servers in containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.attack.attack import Attack, Strike, all_of, lasts, tells
from tests.attack.ground import Ground
from tests.e2e.manifests import Json, container, pod
from tests.support.servers.health_server import answer, failing, plain, speaking
from tests.support.servers.local_servers import Handler, answering, dribbling, endless, response, silent

PORT: Final = 8080
EVERY_SECOND: Final[Json] = {"periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 1}
FLOOD: Final = 40
SURROGATE: Final = response(b"", "302 Found", ("Location: http://[X",)).replace(b"[X", b"[\xff")

WEB: Final[Mapping[str, Handler]] = {
    "surrogate": answering(SURROGATE),
    "body": endless(b"HTTP/1.1 500 No\r\n\r\n", b"x" * 65536),
    "headers": endless(b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 8000 + b"\r\n"),
    "chunks": endless(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1000),
    "drips": dribbling(response(b"x" * 100)),
    "length": answering(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n"),
    "status": answering(b"HTTP/1.1 " + b"9" * 5000 + b" OK\r\n\r\n"),
    "redirects": answering(response(b"", "302 Found", (f"Location: http://localhost:{PORT}/more",))),
    "silence": silent,
    "garbage": answering(b"\x00\xff" * 30_000),
}
GRPC: Final[Mapping[str, Handler]] = {
    "varint": speaking(answer(b"\x08" + b"\xff" * 8999 + b"\x01")),
    "digits": speaking(plain("9" * 5000)),
    "code": speaking(failing("9" * 5000, "x")),
    "no-text": speaking(failing("5", b"\xff\xfe")),
    "kind": speaking(plain("200", b"\xff")),
    "web": answering(response()),
    "frames": endless(b"", b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" * 1000),
}


def _probed(name: str, **probe: Any) -> Json:
    return pod(name, container(readinessProbe={**probe, **EVERY_SECOND}))


def _served(handlers: Mapping[str, Handler], kind: str) -> Strike:
    """A pod for each of them, and each is found to be ill, for some seconds."""
    probe = {"web": {"httpGet": {"port": PORT}}, "grpc": {"grpc": {"port": PORT}}}[kind]

    def strike(ground: Ground) -> None:
        names = {f"{kind}-{what}": handler for what, handler in handlers.items()}
        ground.write(*(_probed(name, **probe) for name in names))
        ground.agent.until_running(names)
        for name, handler in names.items():
            ground.serve(name, PORT, handler)
        ground.last(3)
        for name in names:
            ground.until(lambda name=name: _is_told(ground, name), f"{name} is told")  # type: ignore[misc]

    return strike


def _is_told(ground: Ground, name: str) -> bool:
    """Whether the pod is told about its probe, once there has been a server."""
    return bool({"Unhealthy", "ProbeWarning"} & ground.agent.reasons(name).keys()) or name.endswith(
        ("drips", "redirects")
    )


def _hooks(ground: Ground) -> None:
    """A preStop hook that never ends its answer: the pod goes after its grace period."""
    names = {f"hook-{what}": WEB[what] for what in ("body", "headers", "silence", "drips")}
    ground.write(
        *(
            pod(
                name,
                container(lifecycle={"preStop": {"httpGet": {"port": PORT}}}),
                terminationGracePeriodSeconds=3,
            )
            for name in names
        )
    )
    ground.agent.until_ready(names)
    for name, handler in names.items():
        ground.serve(name, PORT, handler)
    ground.agent.remove(*names)
    ground.until(lambda: not set(names) & set(ground.agent.pods()), "they are gone after their grace period", 30)


ATTACKS: Final = (
    Attack(
        "probe-output",
        "Probes' commands print without end, in one line and in many, and what is no text.",
        "not be Ready",
        all_of(tells("endless-line", "Unhealthy"), tells("endless-bytes", "Unhealthy"), lasts(2)),
        (
            _probed("endless-line", exec={"command": ["sh", "-c", "cat /dev/zero"]}),
            _probed("endless-bytes", exec={"command": ["sh", "-c", "busybox yes \u202e; cat /bin/busybox; exit 1"]}),
            _probed("bytes", exec={"command": ["sh", "-c", "cat /bin/busybox; exit 1"]}),
        ),
        is_quick=False,
    ),
    Attack(
        "probe-answers",
        "Servers answer HTTP probes with lone surrogates, endless bodies, headers and chunks, and 5,000 digits.",
        "not be Ready; it is probed on",
        _served(WEB, "web"),
        is_quick=False,
    ),
    Attack(
        "probe-redirect",
        "One probe is redirected to a location that has no encoding.",
        "not be Ready; it is probed on",
        _served({"surrogate": WEB["surrogate"]}, "web"),
        is_quick=False,
    ),
    Attack(
        "probe-grpc",
        "Servers answer gRPC probes with numbers of 9,000 bytes, 5,000 digits and headers that are no text.",
        "not be Ready; it is probed on",
        _served(GRPC, "grpc"),
        is_quick=False,
    ),
    Attack(
        "probe-flood",
        "Forty containers of two pods have three probes each, every second, that all fail or hang.",
        "be restarted, and not be Ready",
        lasts(20),
        tuple(
            pod(
                f"flood-{n}",
                *(
                    container(
                        f"c{number}",
                        readinessProbe={"exec": {"command": ["sleep", "5"]}, **EVERY_SECOND},
                        livenessProbe={"tcpSocket": {"port": 9}, **EVERY_SECOND, "failureThreshold": 1000},
                        startupProbe={"httpGet": {"port": 9}, **EVERY_SECOND, "failureThreshold": 1000},
                    )
                    for number in range(FLOOD // 2)
                ),
            )
            for n in range(2)
        ),
        is_quick=False,
    ),
    Attack(
        "hook-answers",
        "Servers answer preStop hooks with endless bodies and headers, byte by byte, or never.",
        "be stopped after its grace period",
        _hooks,
        is_quick=False,
    ),
    Attack(
        "hook-output",
        "A postStart hook prints without end and then fails.",
        "be restarted with back-off",
        tells("prints", "FailedPostStartHook"),
        (
            pod(
                "prints",
                container(
                    lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "head -c 50000000 /dev/zero; exit 1"]}}}
                ),
            ),
        ),
        is_quick=False,
    ),
)
