"""``[LOCAL:]REMOTE`` and the addresses to listen on, as kubectl reads them (client-go tools/portforward). Pure."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from ipc.host.text.json_types import Json
from ipc.k8s.network.ports import MAX_PORT
from supervisor.cli.options import Failure

LOCALHOST: Final = "localhost"


class ForwardedPort(msgspec.Struct, frozen=True):
    """A port here and the pod's that it leads to."""

    local: int
    """0: any that is free."""
    remote: int


class ListenAddress(msgspec.Struct, frozen=True):
    """Where to listen."""

    host: str
    family: socket.AddressFamily
    optional: bool = False
    """One of several that do equally: it is enough if one of them can be had."""


def forwarded_port(text: str, pod: Json) -> ForwardedPort:
    """``8080:80``, ``80``, ``:80``, and with a port's name for its number in the pod. Raises Failure."""
    parts = text.split(":")
    if len(parts) > 2:
        raise Failure(f"invalid port format '{text}'", prefix="error: ")
    remote_text = parts[-1]
    if not remote_text:
        raise Failure("remote port cannot be empty", prefix="error: ")
    remote = _number(remote_text, "remote") if remote_text.isdigit() else _named_port(pod, remote_text)
    if remote == 0:
        raise Failure("remote port must be > 0", prefix="error: ")
    if _is_only_udp(pod, remote):
        raise Failure(f"UDP protocol is not supported for {remote_text}", prefix="error: ")
    local = _number(parts[0] or "0", "local") if len(parts) == 2 else remote
    return ForwardedPort(local, remote)


def listen_addresses(texts: Sequence[str]) -> list[ListenAddress]:
    """Parse ``--address``, which may be given several times and may have commas. Raises Failure."""
    words = [word.strip() for text in texts for word in text.split(",")]
    found = {address.host: address for word in words for address in _addresses(word)}
    return sorted(found.values(), key=lambda address: address.host)


def _addresses(word: str) -> list[ListenAddress]:
    if word == LOCALHOST:
        return [ListenAddress("127.0.0.1", socket.AF_INET, True), ListenAddress("::1", socket.AF_INET6, True)]
    try:
        version = ipaddress.ip_address(word).version
    except ValueError:
        raise Failure(f"{word} is not a valid IP", prefix="error: ") from None
    return [ListenAddress(word, socket.AF_INET if version == 4 else socket.AF_INET6)]


def _number(text: str, which: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_PORT):
        raise Failure(f"error parsing {which} port '{text}': it is none of 0..{MAX_PORT}", prefix="error: ")
    return int(text)


def _named_port(pod: Json, name: str) -> int:
    number = next((port["containerPort"] for port in _ports(pod) if port.get("name") == name), None)
    if number is None:
        raise Failure(f"Pod '{pod['metadata']['name']}' does not have a named port '{name}'", prefix="error: ")
    return int(number)


def _is_only_udp(pod: Json, number: int) -> bool:
    protocols = {port.get("protocol", "TCP") for port in _ports(pod) if port["containerPort"] == number}
    return protocols == {"UDP"}


def _ports(pod: Json) -> Iterator[Json]:
    lists = (pod["spec"].get(kind, ()) for kind in ("containers", "initContainers"))
    return (port for containers in lists for container in containers for port in container.get("ports", ()))
