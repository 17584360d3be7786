from __future__ import annotations

import msgspec
import pytest

from ipc.link.wire.stream_channels import (
    Channel,
    Message,
    TerminalSize,
    decode_message,
    decode_size,
    decode_status,
    encode_size,
    encode_status,
    exit_status,
    failure_status,
)


def test_messages() -> None:
    assert decode_message(b"\x01hello") == Message(Channel.STDOUT, b"hello")
    assert decode_message(b"\x00") == Message(Channel.STDIN)
    assert decode_message(b"\xff\x00") == Message(Channel.STDIN, ends=True)


@pytest.mark.parametrize("data", [b"", b"\xff", b"\xff\x00\x01"])
def test_what_is_no_message(data: bytes) -> None:
    with pytest.raises(ValueError, match="without a channel"):
        decode_message(data)


def test_an_exit_code_as_kubectl_reads_it() -> None:
    encoded = encode_status(exit_status(42))
    assert msgspec.json.decode(encoded) == {
        "metadata": {},
        "status": "Failure",
        "message": "command terminated with non-zero exit code: 42",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": "42"}]},
    }
    assert decode_status(encoded).exit_code() == 42
    assert decode_status(encode_status(exit_status(0))).exit_code() == 0


@pytest.mark.parametrize(
    "status",
    [
        failure_status("something else"),
        decode_status(b'{"status":"Failure","reason":"NonZeroExitCode"}'),
        decode_status(
            b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"x"}]}}'
        ),
    ],
)
def test_no_exit_code(status: object) -> None:
    assert decode_status(msgspec.json.encode(status)).exit_code() is None


def test_sizes_as_client_go_writes_them() -> None:
    assert encode_size(TerminalSize(80, 24)) == b'{"Width":80,"Height":24}'
    assert decode_size(b'{"Width":65535,"Height":1}') == TerminalSize(65535, 1)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"Width":0,"Height":1}', b'{"Width":1,"Height":65536}'])
def test_what_is_no_size(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (msgspec's words differ)
        decode_size(data)
