"""ConfigMap and Secret: decoding as Go does, defaults, ValidateConfigMap and ValidateSecret, their updates."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.decode import decode_config_map, decode_secret
from ipc.k8s.api.defaults import default_secret
from ipc.k8s.api.errors import FieldError, FieldErrors
from ipc.k8s.api.v1.config_objects import OPAQUE, ConfigMap, Secret
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.validation.config_objects import (
    MAX_OBJECT_BYTES,
    validate_config_map,
    validate_config_map_update,
    validate_secret,
    validate_secret_update,
)

META = ObjectMeta(name="a", namespace="default")


def config_map(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **fields}


def secret(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **fields}


def errors_of(decode: Any, value: object) -> list[str]:
    with pytest.raises(FieldErrors) as found:
        decode(value)
    return [str(error) for error in found.value.errors]


def said(errors: tuple[FieldError, ...]) -> list[str]:
    return [str(error) for error in errors]


# --- decoding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", b""),
        ("eA==", b"x"),
        ("eHl6", b"xyz"),
        ("eH\nl6\r\n", b"xyz"),
        ("\n", b""),
        ("+/+/", b"\xfb\xff\xbf"),
        ("eB==", b"x"),
    ],
)
def test_base64_as_go_takes_it(text: str, value: bytes) -> None:
    """Line breaks anywhere; bits that padding leaves over do not matter (encoding/base64, StdEncoding)."""
    assert decode_secret(secret(data={"k": text})).data == {"k": value}
    assert decode_config_map(config_map(binaryData={"k": text})).binary_data == {"k": value}


@pytest.mark.parametrize("text", ["x", "eA", "eA=", "eA===", "eHl6=", "e-_A", "eA= =", " eA==", "eA==eA==", "é==="])
def test_what_go_does_not_take(text: str) -> None:
    assert errors_of(decode_secret, secret(data={"k": text})) == ["data[k]: must be base64"]


def test_what_is_written_as_text_counts_more() -> None:
    found = decode_secret(secret(data={"a": "eA==", "b": None}, stringData={"a": "é", "c": None}))
    assert (found.data, found.string_data) == ({"a": "é".encode(), "b": b"", "c": b""}, {})
    assert msgspec.json.decode(msgspec.json.encode(found), type=Secret) == found
    assert decode_secret(json.loads(msgspec.json.encode(found))) == found


def test_wrong_types_are_named_and_their_values_are_not() -> None:
    assert errors_of(decode_secret, secret(data={"k": 5150}, stringData={"t": ["hush"]}, immutable="yes")) == [
        "data[k]: expected string, got integer",
        "stringData[t]: expected string, got array",
        "immutable: expected boolean, got string",
    ]
    assert errors_of(decode_config_map, config_map(text={})) == ["text: unknown field"]
    assert errors_of(decode_secret, config_map()) == [
        'kind: Unsupported value: "ConfigMap": supported values: "Secret"'
    ]
    assert errors_of(decode_secret, "hush") == ["expected object, got string"]


def test_the_default_type() -> None:
    assert default_secret(Secret()).type == OPAQUE
    assert default_secret(Secret(type="mine")).type == "mine"


# --- validation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["a", "A.b_c-9", ".hidden", "a..b", "x" * 253])
def test_good_keys(key: str) -> None:
    assert validate_secret(Secret(metadata=META, data={key: b""})) == ()
    assert validate_config_map(ConfigMap(metadata=META, data={key: ""})) == ()
    assert validate_config_map(ConfigMap(metadata=META, binary_data={key: b""})) == ()


@pytest.mark.parametrize("key", ["", ".", "..", "..a", "a/b", "a b", "ä", "x" * 254])
def test_bad_keys(key: str) -> None:
    (error,) = validate_secret(Secret(metadata=META, data={key: b"hush"}))
    assert error.path.startswith("data[")
    assert "hush" not in str(error)
    assert len(validate_config_map(ConfigMap(metadata=META, data={key: ""}))) == 1
    (error,) = validate_config_map(ConfigMap(metadata=META, binary_data={key: b""}))
    assert error.path.startswith("binaryData[")


def test_a_key_stands_in_one_of_both() -> None:
    both = ConfigMap(metadata=META, data={"a": "", "b": ""}, binary_data={"b": b""})
    assert said(validate_config_map(both)) == ['data[b]: Invalid value: "b": duplicate of key present in binaryData']


def test_the_size_of_all_values_has_a_maximum() -> None:
    half = MAX_OBJECT_BYTES // 2
    assert validate_secret(Secret(metadata=META, data={"a": b"x" * half, "b": b"x" * half})) == ()
    too_long = f"Too long: may not be more than {MAX_OBJECT_BYTES} bytes"
    assert said(validate_secret(Secret(metadata=META, data={"a": b"x" * half, "b": b"x" * half, "c": b"x"}))) == [
        f"data: {too_long}"
    ]
    # In bytes, and of both maps.
    assert (
        validate_config_map(ConfigMap(metadata=META, data={"a": "é" * (half // 2)}, binary_data={"b": b"x" * half}))
        == ()
    )
    fat = ConfigMap(metadata=META, data={"a": "é" * (half // 2)}, binary_data={"b": b"x" * (half + 1)})
    assert said(validate_config_map(fat)) == [too_long]


def test_metadata_counts_too() -> None:
    assert said(validate_config_map(ConfigMap())) == ["metadata.name: Required value"]
    (error,) = validate_secret(Secret(metadata=ObjectMeta(name="Upper")))
    assert error.path == "metadata.name"


@pytest.mark.parametrize(
    ("type", "data", "paths"),
    [
        ("", {}, []),
        (OPAQUE, {}, []),
        ("example.com/mine", {}, []),
        ("bootstrap.kubernetes.io/token", {}, []),
        ("kubernetes.io/tls", {"tls.crt": b"", "tls.key": b""}, []),
        ("kubernetes.io/tls", {"tls.crt": b"x"}, ["data[tls.key]"]),
        ("kubernetes.io/tls", {}, ["data[tls.crt]", "data[tls.key]"]),
        ("kubernetes.io/basic-auth", {"username": b""}, []),
        ("kubernetes.io/basic-auth", {"password": b""}, []),
        ("kubernetes.io/basic-auth", {}, ["data[username]", "data[password]"]),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": b"x"}, []),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": b""}, ["data[ssh-privatekey]"]),
        ("kubernetes.io/dockercfg", {".dockercfg": b"{}"}, []),
        ("kubernetes.io/dockercfg", {".dockercfg": b"[]"}, ["data[.dockercfg]"]),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b'{"auths": {}}'}, []),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b"null"}, []),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b"hush"}, ["data[.dockerconfigjson]"]),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b'{"auths": NaN}'}, ["data[.dockerconfigjson]"]),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b"\xff"}, ["data[.dockerconfigjson]"]),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b"[" * 100_000}, ["data[.dockerconfigjson]"]),
        ("kubernetes.io/dockerconfigjson", {}, ["data[.dockerconfigjson]"]),
        ("kubernetes.io/service-account-token", {}, ["metadata.annotations[kubernetes.io/service-account.name]"]),
    ],
)
def test_what_a_type_asks_for(type: str, data: dict[str, bytes], paths: list[str]) -> None:
    errors = validate_secret(Secret(metadata=META, type=type, data=data))
    assert [error.path for error in errors] == paths
    assert "hush" not in str(errors)


def test_what_may_change() -> None:
    old = ConfigMap(metadata=META, data={"a": "b"}, immutable=True)
    assert validate_config_map_update(msgspec.structs.replace(old, metadata=ObjectMeta(name="x")), old) == ()
    assert validate_config_map_update(ConfigMap(), ConfigMap(data={"a": "b"})) == ()
    changed = ConfigMap(metadata=META, binary_data={"b": b""})
    assert [error.path for error in validate_config_map_update(changed, old)] == ["immutable", "data", "binaryData"]
    hushed = Secret(data={"a": b"hush"}, type="t", immutable=True)
    errors = validate_secret_update(Secret(data={"a": b"hush more"}, type="u", immutable=True), hushed)
    assert [error.path for error in errors] == ["data", "type"]
    assert "hush" not in str(errors)
    assert validate_secret_update(Secret(data={"a": b"x"}, type="t"), Secret(type="t")) == ()
