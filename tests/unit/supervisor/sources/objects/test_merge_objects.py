"""ConfigMaps and Secrets from manifests: decoded, merged as pods are, immutable ones kept; no value told."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.annotations import LAST_APPLIED
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from supervisor.protocol.manifests import (
    APPLY_SOURCE,
    FILE_SOURCE,
    DecodedFile,
    ManifestError,
    ManifestErrorKind,
    ManifestObject,
    SourceSnapshot,
)
from supervisor.protocol.source_updates import ObjectsExpected, ObjectUpdate, PodUpdate, Update
from supervisor.sources.expected_objects import load_names, save_names
from supervisor.sources.objects import merge_objects
from supervisor.sources.objects.decode import decode_manifest
from supervisor.sources.objects.merge import PodConfig
from tests.support.manifests import NOW, ORIGIN, manifest, text

PLANTED = "hunter2planted"


def config_map(name: str = "app", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def secret(name: str = "login", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **fields}


def decode(*manifests: dict[str, Any], file: str = "web.yaml") -> DecodedFile:
    return decode_manifest(text(*manifests), file, ORIGIN)


def messages(decoded: DecodedFile) -> list[str]:
    return [str(error) for error in decoded.errors]


# --- documents --------------------------------------------------------------------------------------------------------


def test_pods_and_objects_in_one_file() -> None:
    decoded = decode(
        manifest("web"),
        {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), manifest("b"), secret("c")]},
        {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "d"}}]},
        {"apiVersion": "v1", "kind": "SecretList", "items": [{"metadata": {"name": "e"}, "stringData": {"k": "v"}}]},
    )
    assert decoded.errors == ()
    assert [(item.pod.metadata.name, item.document) for item in decoded.pods] == [("web", 1), ("b", 2)]
    assert [(str(item.key), item.document) for item in decoded.objects] == [
        ("ConfigMap default/a", 2),
        ("Secret default/c", 2),
        ("ConfigMap default/d", 3),
        ("Secret default/e", 4),
    ]


def test_what_an_object_becomes() -> None:
    metadata = {
        "name": "login",
        "namespace": "prod",
        "resourceVersion": "7",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "annotations": {LAST_APPLIED: PLANTED, "mine": "stays"},
    }
    (item,) = decode(secret(data={"a": "eA==", "b": "eQ=="}, stringData={"b": "z"}) | {"metadata": metadata}).objects
    found = item.object
    assert isinstance(found, Secret)
    assert (dict(found.data), dict(found.string_data), found.type) == ({"a": b"x", "b": b"z"}, {}, "Opaque")
    assert found.metadata.annotations == {"mine": "stays"}
    assert (found.metadata.resource_version, found.metadata.creation_timestamp) == ("", None)
    assert len(found.metadata.uid) == 36


def test_uids_differ_by_kind_namespace_and_name() -> None:
    away = config_map("a") | {"metadata": {"name": "a", "namespace": "away"}}
    found = decode(manifest("a"), config_map("a"), secret("a"), away)
    uids = [found.pods[0].pod.metadata.uid, *(item.object.metadata.uid for item in found.objects)]
    assert len(set(uids)) == 4


def test_errors_name_document_field_and_object() -> None:
    decoded = decode(config_map(), secret(data={"a b": "eA==", "c": "?"}), config_map("x", data={"a": 5}))
    assert messages(decoded) == [
        "web.yaml: document 2: data[c]: must be base64",
        "web.yaml: document 3: data[a]: expected string, got integer",
    ]
    assert [(error.namespace, error.name) for error in decoded.errors] == [("default", "login"), ("default", "x")]
    assert [str(item.key) for item in decoded.objects] == ["ConfigMap default/app"]


# --- merging ----------------------------------------------------------------------------------------------------------


def stated(*manifests: dict[str, Any], file: str = "a.yaml") -> tuple[ManifestObject, ...]:
    decoded = decode(*manifests, file=file)
    assert decoded.errors == ()
    return decoded.objects


def snapshot(
    *objects: tuple[ManifestObject, ...], source: str = FILE_SOURCE, bad: tuple[str, ...] = (), complete: bool = True
) -> SourceSnapshot:
    errors = tuple(ManifestError(kind=ManifestErrorKind.SYNTAX, file=file, message="bad") for file in bad)
    found = tuple(item for group in objects for item in group)
    return SourceSnapshot(source=source, objects=found, errors=errors, complete=complete)


def merge(config: PodConfig, *objects: tuple[ManifestObject, ...], **fields: Any) -> list[str]:
    """``+`` before what came or changed, ``-`` before what is gone."""
    updates = [u for u in config.merge(snapshot(*objects, **fields), NOW) if isinstance(u, ObjectUpdate)]
    return [
        *(f"+{item.key.name}" for update in updates for item in update.stated),
        *(f"-{key.name}" for update in updates for key in update.gone),
    ]


def conflicts(config: PodConfig) -> list[str]:
    return [str(error) for error in config.conflicts()]


@pytest.fixture
def config() -> PodConfig:
    return PodConfig([FILE_SOURCE, APPLY_SOURCE])


def test_they_come_change_and_go(config: PodConfig) -> None:
    assert merge(config, stated(config_map("a"), secret("b"))) == ["+a", "+b"]
    assert merge(config, stated(config_map("a"), secret("b"))) == []
    (a,) = (item.object for key, item in config.objects().items() if key.name == "a")
    assert a.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    assert merge(config, stated(config_map("a", data={"k": "v"}), secret("b"))) == ["+a"]
    assert merge(config, stated(secret("b"), file="a.yaml")) == ["-a"]
    assert merge(config) == ["-b"]


def test_they_come_before_the_pods_of_their_file_and_go_after_them(config: PodConfig) -> None:
    both = decode(manifest("web"), config_map("app"))

    def kinds(state: DecodedFile) -> list[str]:
        given = SourceSnapshot(source=FILE_SOURCE, pods=state.pods, objects=state.objects, complete=True)
        return [u.op.value if isinstance(u, PodUpdate) else "objects" for u in config.merge(given, NOW)]

    assert kinds(both) == ["objects", "ADD"]
    assert kinds(DecodedFile()) == ["REMOVE", "objects"]


def test_partial_knowledge_removes_nothing(config: PodConfig) -> None:
    merge(config, stated(config_map("a")), stated(config_map("b"), file="b.yaml"))
    assert merge(config, complete=False) == []
    assert merge(config, stated(config_map("a")), bad=("b.yaml",)) == []
    assert merge(config, stated(config_map("a"))) == ["-b"]


def test_a_name_is_held_by_who_came_first_and_falls_to_who_waits(config: PodConfig) -> None:
    merge(config, stated(config_map("a", data={"from": "file"})))
    assert merge(config, stated(config_map("a", data={"from": "apply"}), file="x.json"), source=APPLY_SOURCE) == []
    assert conflicts(config) == [
        "x.json: document 1: metadata.name: ConfigMap default/a already comes from file: a.yaml, which keeps it"
    ]
    key = ObjectKey(ObjectKind.CONFIG_MAP, "default", "a")
    assert config.desired_elsewhere(APPLY_SOURCE) == {key: "file: a.yaml"}
    # One step: nobody sees it missing.
    assert merge(config) == ["+a"]
    found = config.objects()[key].object
    assert isinstance(found, ConfigMap)
    assert found.data == {"from": "apply"}


def test_a_pod_a_config_map_and_a_secret_may_share_a_name(config: PodConfig) -> None:
    assert merge(config, stated(config_map("a"), secret("a"))) == ["+a", "+a"]
    assert conflicts(config) == []


def test_an_immutable_object_stays_as_it_was_until_it_is_gone(config: PodConfig) -> None:
    first = config_map("a", data={"k": "old"}, immutable=True)
    merge(config, stated(first))
    for changed in ({**first, "data": {"k": "new"}}, {**first, "immutable": False}, {**first, "binaryData": {"b": ""}}):
        assert merge(config, stated(changed)) == []
        assert "ConfigMap default/a stays as it was: Forbidden: field is immutable" in conflicts(config)[0]
    # Labels may change.
    assert merge(config, stated({**first, "metadata": {"name": "a", "labels": {"x": "y"}}})) == ["+a"]
    assert conflicts(config) == []
    assert merge(config) == ["-a"]
    assert merge(config, stated({**first, "data": {"k": "new"}})) == ["+a"]


def test_their_number_has_a_maximum(config: PodConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_objects, "MAX_OBJECTS", 2)
    merge(config, stated(config_map("b")))
    assert merge(config, stated(config_map("a"), config_map("b"), config_map("c"))) == ["+a"]
    assert conflicts(config) == ["a.yaml: document 3: more than 2 objects beside pods"]
    assert merge(config, stated(secret("x"), file="x.json"), source=APPLY_SOURCE) == []
    assert merge(config, stated(config_map("a"))) == ["+x", "-b"]


def test_a_secrets_type_stays_too(config: PodConfig) -> None:
    merge(config, stated(secret("a", stringData={"username": PLANTED})))
    assert merge(config, stated(secret("a", type="kubernetes.io/basic-auth", stringData={"username": "x"}))) == []
    (refused,) = conflicts(config)
    assert "type: Secret default/a stays as it was: " in refused
    assert PLANTED not in refused


# --- after a restart --------------------------------------------------------------------------------------------------


def expected(updates: Iterable[Update]) -> list[list[str]]:
    """Objects that are expected from then on, of each update that says so."""
    return [sorted(key.name for key in update.keys) for update in updates if isinstance(update, ObjectsExpected)]


def test_what_was_there_is_expected_until_its_file_was_read(config: PodConfig) -> None:
    merge(config, stated(config_map("a")), stated(config_map("b"), secret("c"), file="b.yaml"))
    merge(config, stated(secret("x"), file="x.json"), source=APPLY_SOURCE)
    names = config.names()
    assert PLANTED not in str(names)
    again = PodConfig([FILE_SOURCE, APPLY_SOURCE])
    assert expected(again.restore((), names)) == [["a", "b", "c", "x"]]
    assert expected(again.merge(snapshot(complete=False), NOW)) == []
    broken = snapshot(stated(config_map("a")), stated(secret("c"), file="b.yaml"), bad=("b.yaml",))
    assert expected(again.merge(broken, NOW)) == [["b", "x"]]
    assert {(item.file, item.key.name) for item in again.names()} == {
        ("a.yaml", "a"),
        ("b.yaml", "b"),
        ("b.yaml", "c"),
        ("x.json", "x"),
    }
    assert expected(again.merge(snapshot(source=APPLY_SOURCE), NOW)) == [["b"]]
    assert expected(again.merge(snapshot(stated(config_map("a"))), NOW)) == [[]]
    assert expected(again.merge(snapshot(), NOW)) == []


def test_names_survive_on_disk_and_a_damaged_file_is_said(
    tmp_path: Path, config: PodConfig, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state" / "objects.json"
    assert load_names(path) == ()
    merge(config, stated(config_map("a", data={"k": PLANTED}), secret("b", stringData={"k": PLANTED})))
    save_names(path, config.names())
    assert load_names(path) == config.names()
    assert PLANTED not in path.read_text()
    path.write_text("[1]")
    assert load_names(path) == ()
    assert "objects.json cannot be used: Expected `object`" in caplog.text
    assert path.with_name("objects.json.refused").exists()


# --- no value of a Secret in any error --------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "",
        "\n",
        " ",
        "  ",
        ":",
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "*",
        "&",
        "!",
        "!!",
        "%",
        "@",
        "|",
        ">",
        "\t",
        "?",
        ",",
        "#",
        "<<: ",
        "\x00",
        "---\n",
    ]
)


@given(
    st.lists(st.tuples(st.integers(0, 200), PIECES), max_size=4), st.booleans(), st.sampled_from(["Secret", "Pod", "X"])
)
def test_no_damage_makes_an_error_repeat_a_value(damage: list[tuple[int, str]], as_json: bool, kind: str) -> None:
    """Pieces of syntax anywhere but in the value and in the key before it, which errors may name."""
    document = secret(stringData={"password": "PPPP"}, data={"other": "QQQQ"}) | {"kind": kind}
    plain = msgspec.json.encode(document).decode() if as_json else yaml.safe_dump(document)
    for position, piece in damage:
        position %= len(plain)
        plain = plain[:position] + piece + plain[position:]
    encoded = base64.b64encode(PLANTED.encode()).decode()
    body = plain.replace("PPPP", PLANTED).replace("QQQQ", encoded)
    decoded = decode_manifest(body.encode(), "web.yaml", ORIGIN)
    told = [message for message in messages(decoded) if PLANTED in message or encoded in message]
    # A key that damage has made is named.
    assert [message for message in told if f".{PLANTED}" not in message and f"[{PLANTED}" not in message] == []


@pytest.mark.parametrize(
    "value",
    [
        f"*{PLANTED}",
        f"!{PLANTED} x",
        f"!{PLANTED}!x",
        f"&{PLANTED} *{PLANTED}",
        f"!!{PLANTED} x",
        f"[{PLANTED}]",
        f"{{{PLANTED}: 1}}",
        f"a: {PLANTED}",
        f'"{PLANTED}',
        f"%{PLANTED}",
        f"@{PLANTED}",
        f"`{PLANTED}",
    ],
)
def test_no_way_to_write_a_value_makes_an_error_repeat_it(value: str) -> None:
    for field in ("data", "stringData"):
        body = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n{field}:\n  password: {value}\n"
        decoded = decode_manifest(body.encode(), "web.yaml", ORIGIN)
        assert decoded.errors
        assert PLANTED not in str(decoded.errors)


def test_nothing_that_holds_a_secret_shows_it() -> None:
    decoded = decode(secret(stringData={"password": PLANTED}))
    assert PLANTED not in repr(decoded)
    assert "password: 14 bytes" in repr(decoded)
