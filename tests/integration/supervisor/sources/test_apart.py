"""Costly manifests are decoded in a program of their own: the same comes out, in bounded time and memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import psutil
import pytest
import yaml

from ipc.host.clock import monotonic
from supervisor.protocol.manifests import DecodedFile, ManifestErrorKind
from supervisor.sources.objects.apart import BYTES_PER_PROGRAM, LIGHT_BYTES, Decoder, is_heavy
from supervisor.sources.objects.decode import decode_manifest
from tests.support.manifests import ORIGIN, manifest, text

PADDING: Final = "x" * LIGHT_BYTES
OBJECTS: Final[tuple[dict[str, Any], ...]] = (
    manifest("web", restartPolicy="Never", terminationGracePeriodSeconds=7),
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"a": PADDING},
        "binaryData": {"b": "AA=="},
    },
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": PADDING}, "type": "Opaque"},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 7},
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "r"}, "handler": "crun"},
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "d"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    {"apiVersion": "v1", "kind": "Nothing"},
    manifest("wrong", hostNetwork="perhaps"),
)
SLOW: Final = b'a: ["\\\'", ' + b"a," * 120_000 + b"]"
"""Only the slow parser knows the escape; it takes seconds."""


@pytest.fixture
def decoder() -> Iterator[Decoder]:
    made = Decoder()
    yield made
    made.close()
    assert programs() == []


def programs() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "decode_program" in " ".join(child.cmdline())]


@pytest.mark.parametrize("encode", [msgspec.json.encode, lambda value: yaml.safe_dump(value).encode()])
def test_the_same_comes_out(decoder: Decoder, encode: Any) -> None:
    data = b"\n---\n".join(map(encode, OBJECTS))
    assert is_heavy(data)
    expected = decode_manifest(data, "some.yaml", ORIGIN)
    assert (len(expected.pods), len(expected.objects), len(expected.errors)) == (1, 6, 2)
    assert decoder.decode(data, "some.yaml", ORIGIN) == expected
    assert len(programs()) == 1


def test_what_is_light_needs_no_program(decoder: Decoder) -> None:
    assert len(decoder.decode(text(manifest()), "web.yaml", ORIGIN).pods) == 1
    assert programs() == []


def test_a_list_that_was_posted(decoder: Decoder) -> None:
    data = msgspec.json.encode([manifest("a", metadata={"annotations": {"a": PADDING}})]).replace(b"[", b"# \n[", 1)
    assert [item.pod.metadata.name for item in decoder.decode(data, "x", ORIGIN, "posted").pods] == ["a"]


def test_text_that_is_no_unicode_is_refused_alike(decoder: Decoder) -> None:
    data = msgspec.json.encode(manifest("a", metadata={"annotations": {"a": PADDING, "b": "?"}}))
    data = data.replace(b'"?"', b'"\\ud800"')
    expected = decode_manifest(data, "x", ORIGIN)
    assert len(expected.errors) == 1
    assert decoder.decode(data, "x", ORIGIN) == expected


def test_memory_is_given_back_between_manifests(decoder: Decoder) -> None:
    data = text(manifest()) + b"\n# " + b"x" * (BYTES_PER_PROGRAM - 100)
    for _ in range(2):
        assert len(decoder.decode(data, "x", ORIGIN).pods) == 1
    [second] = programs()
    assert decoder.decode(data, "x", ORIGIN).errors == ()
    assert programs() != [second]


def test_one_that_takes_too_long_has_an_error_and_the_next_is_decoded() -> None:
    decoder = Decoder(deadline_s=0.5)
    try:
        [error] = decoder.decode(SLOW, "slow.yaml", ORIGIN).errors
        assert (error.kind, error.file) == (ManifestErrorKind.SYNTAX, "slow.yaml")
        assert "was not decoded within 0.5 s" in error.message
        assert programs() == []
    finally:
        decoder.close()


def test_one_that_ends_the_program_has_an_error(decoder: Decoder) -> None:
    """As the kernel does it at the limit of CPU time, or without memory; it is tried twice."""
    killed = 0
    found: list[DecodedFile] = []
    thread = threading.Thread(target=lambda: found.append(decoder.decode(SLOW, "slow.yaml", ORIGIN)))
    thread.start()
    last = None
    while thread.is_alive():
        for program in programs():
            if program != last:
                last, killed = program, killed + 1
                program.kill()
        thread.join(0.01)
    assert killed == 2
    assert [error.message for error in found[0].errors] == ["took too much to decode: make it smaller, or divide it"]


def test_one_that_nobody_waits_for_ends_at_once(decoder: Decoder) -> None:
    thread = threading.Thread(target=lambda: decoder.decode(SLOW, "slow.yaml", ORIGIN))
    thread.start()
    while not programs():
        thread.join(0.01)
    decoder.end()
    began = monotonic()
    thread.join()
    assert monotonic() - began < 4.0, "the slow parser takes longer"
