"""ConfigMaps and Secrets that were applied: where they are kept, what is refused, what a restart and a reboot leave."""

from __future__ import annotations

import base64
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from supervisor.protocol.manifests import APPLY_SOURCE
from supervisor.sources import directory
from supervisor.sources.applied import AppliedStore, Key, file_name
from supervisor.sources.objects.identity import Origin
from supervisor.sources.secret_places import MemoryPlace, SealedPlace, SecretPlace, carry_over
from tests.support.applied import patched
from tests.support.manifests import manifest, text
from tests.unit.supervisor.sources.objects.test_merge_objects import PLANTED, config_map, secret

ORIGIN = Origin(instance="test", node_name="node-1", source=APPLY_SOURCE)
LOGIN = ObjectKey(ObjectKind.SECRET, "default", "login")
APP = ObjectKey(ObjectKind.CONFIG_MAP, "default", "app")


class Stores(msgspec.Struct, frozen=True):
    """A store, its directories, and how to get another one on them."""

    directory: Path
    memory: Path

    @property
    def sealed(self) -> SealedPlace:
        return SealedPlace(self.directory.with_name("sealed"), self.directory.with_name("sealed.key"))

    def open(self, secrets: SecretPlace | None = None) -> AppliedStore:
        return AppliedStore(self.directory, ORIGIN, secrets=secrets or MemoryPlace(self.memory))

    def apply(self, *manifests: dict[str, Any]) -> tuple[str, ...]:
        result = self.open().apply("in.yaml", text(*manifests), {})
        return result.lines or tuple(map(str, result.errors))

    def names(self) -> list[str]:
        return [str(item.key) for item in self.open().read().objects]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        yield Stores(tmp_path / "applied", Path(memory) / "applied")


def test_pods_and_objects_together(stores: Stores) -> None:
    manifests = secret(stringData={"password": PLANTED}), manifest("web"), config_map(data={"a": "b"})
    assert stores.apply(*manifests) == ("secret/login created", "pod/web created", "configmap/app created")
    assert stores.apply(*manifests) == ("secret/login unchanged", "pod/web unchanged", "configmap/app unchanged")
    assert stores.apply(config_map(data={"a": "c"})) == ("configmap/app configured",)
    read = stores.open().read()
    assert ([str(item.key) for item in read.objects], len(read.pods), read.complete, read.errors) == (
        [str(APP), str(LOGIN)],
        1,
        True,
        (),
    )


def test_a_secret_is_in_memory_only_and_private(stores: Stores) -> None:
    stores.apply(secret(stringData={"password": PLANTED}), config_map(data={"a": "b"}))
    assert [path.name for path in stores.directory.iterdir()] == ["configmap_default.app.json"]
    (kept,) = stores.memory.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(stores.memory.stat().st_mode) == 0o700


def test_a_reboot_takes_secrets_and_is_no_partial_knowledge(stores: Stores) -> None:
    stores.apply(secret(stringData={"password": PLANTED}), config_map())
    shutil.rmtree(stores.memory)
    read = stores.open().read()
    assert ([str(item.key) for item in read.objects], read.complete) == ([str(APP)], True)


def test_memory_that_cannot_be_read_is_partial_knowledge(stores: Stores) -> None:
    stores.memory.write_text("a file where a directory should be")
    assert not stores.open().read().complete


def test_a_directory_that_cannot_be_made_holds_up_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = AppliedStore(tmp_path / "applied", ORIGIN, secrets=MemoryPlace(tmp_path / "file" / "secrets"))
    assert store.read().complete


def test_without_memory_secrets_are_refused_and_nothing_else_is_done(tmp_path: Path) -> None:
    store = AppliedStore(tmp_path / "applied", ORIGIN, secrets=MemoryPlace(Path("/sys/rootlet")))
    for other in (store, AppliedStore(tmp_path / "applied", ORIGIN)):
        result = other.apply("in.yaml", text(config_map(), secret(stringData={"password": PLANTED})), {})
        (error,) = map(str, result.errors)
        assert error.startswith("in.yaml: document 2: Secrets cannot be kept: ")
        assert PLANTED not in error
        assert other.apply("in.yaml", text(config_map("b")), {}).errors == ()
    assert [str(item.key) for item in AppliedStore(tmp_path / "applied", ORIGIN).read().objects] == [
        "ConfigMap default/b"
    ]


def test_delete(stores: Stores) -> None:
    stores.apply(secret(), config_map(), manifest("app"))
    assert stores.open().delete(LOGIN)
    assert not stores.open().delete(LOGIN)
    assert stores.names() == [str(APP)]
    assert stores.open().delete(APP)
    assert len(stores.open().read().pods) == 1


def test_what_may_not_change_is_refused(stores: Stores) -> None:
    first = secret(stringData={"password": PLANTED}, immutable=True)
    stores.apply(first)
    assert stores.apply(config_map(), {**first, "stringData": {"password": "other"}}) == (
        "in.yaml: document 2: data: Secret default/login: Forbidden: field is immutable when `immutable` is set",
    )
    assert stores.names() == [str(LOGIN)]
    stores.open().delete(LOGIN)
    assert stores.apply({**first, "stringData": {"password": "other"}}) == ("secret/login created",)


def test_names_that_are_taken(stores: Stores) -> None:
    assert stores.apply(config_map(), config_map()) == (
        "in.yaml: document 2: metadata.name: ConfigMap default/app already comes from document 1",
    )
    result = stores.open().apply("in.yaml", text(secret()), {LOGIN: "file: a.yaml"})
    assert [error.message for error in result.errors] == ["Secret default/login already comes from file: a.yaml"]


def test_files_of_different_kinds_never_meet() -> None:
    keys: list[Key] = [
        ("configmap", "default.app"),
        ("default", "app"),
        APP,
        ObjectKey(ObjectKind.SECRET, "default", "app"),
    ]
    assert len({file_name(key) for key in keys}) == len(keys)
    for hostile in ("../../x", "a/b", "", "x" * 999):
        assert "/" not in file_name(ObjectKey(ObjectKind.SECRET, "default", hostile))


def test_what_was_stored_is_known_as_a_restart_reads_it(stores: Stores) -> None:
    store = stores.open()
    manifests = secret(stringData={"password": PLANTED}, type=""), manifest("web"), config_map(data={"a": "b"})
    assert store.apply("in.yaml", text(*manifests), {}).lines
    assert patched(store, APP, "application/merge-patch+json", b'{"data": {"a": "c"}}')
    assert patched(store, ("default", "web"), "application/merge-patch+json", b'{"metadata": {"labels": {"x": "y"}}}')
    assert store.read() == stores.open().read()


def test_a_file_that_somebody_has_changed_is_read_again(stores: Stores) -> None:
    store = stores.open()
    assert store.apply("in.yaml", text(config_map(data={"a": "b"})), {}).lines
    (stores.directory / file_name(APP)).write_text(text(config_map(data={"a": "other"})).decode())
    assert [item.object.data for item in store.read().objects if isinstance(item.object, ConfigMap)] == [{"a": "other"}]


def test_what_was_stored_is_not_decoded_again(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stores.open()
    assert store.apply("in.yaml", text(secret(), manifest("web"), config_map()), {}).lines
    monkeypatch.setattr(directory, "decode_manifest", None)
    assert len(store.read().objects) == 2


# --- sealed on disk ---------------------------------------------------------------------------------------------------


def holds_planted(directory: Path) -> bool:
    encoded = base64.b64encode(PLANTED.encode())
    files = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    assert files
    return any(PLANTED.encode() in content or encoded in content for content in files)


def apply_to(store: AppliedStore, *manifests: dict[str, Any]) -> tuple[str, ...]:
    result = store.apply("in.yaml", text(*manifests), {})
    return result.lines or tuple(map(str, result.errors))


def test_a_sealed_secret_is_there_after_a_reboot_and_readable_nowhere(stores: Stores) -> None:
    first = secret(stringData={"password": PLANTED})
    result = stores.open(stores.sealed).apply("in.yaml", text(first), {})
    assert (result.lines, result.warnings) == (("secret/login created",), ())
    patch = b'{"metadata":{"labels":{"a":"b"}}}'
    assert patched(stores.open(stores.sealed), LOGIN, "merge", patch) is not None
    assert not stores.memory.exists()
    assert not holds_planted(stores.directory.parent)
    assert {stat.S_IMODE(path.stat().st_mode) for path in stores.sealed.directory.iterdir()} == {0o600}
    assert apply_to(stores.open(stores.sealed), first) == ("secret/login unchanged",), "the label was nobody's manifest"
    (found,) = stores.open(stores.sealed).read().objects
    assert isinstance(found.object, Secret)
    assert found.object.data["password"] == PLANTED.encode()
    assert found.object.metadata.labels == {"a": "b"}
    assert stores.open(stores.sealed).delete(LOGIN)
    assert list(stores.sealed.directory.parent.rglob("secret_*")) == []


def test_a_secret_in_memory_comes_with_a_warning(stores: Stores) -> None:
    result = stores.open().apply("in.yaml", text(secret(), config_map()), {})
    (warning,) = result.warnings
    assert warning.startswith("secret/login is kept in memory only, and is gone when the host reboots: ")


def test_sealed_secrets_whose_key_is_lost_are_named_and_hold_up_nothing(stores: Stores) -> None:
    apply_to(stores.open(stores.sealed), secret("one"), secret("two"), config_map())
    stores.sealed.directory.with_name("sealed.key").unlink()
    read = stores.open(stores.sealed).read()
    assert [str(item.key) for item in read.objects] == [str(APP)]
    assert [error.file for error in read.errors] == ["secret_default.one.json", "secret_default.two.json"]
    assert all("its key" in error.message for error in read.errors)
    assert apply_to(stores.open(stores.sealed), secret("one")) == ("secret/one created",)
    (wrong,) = stores.open(stores.sealed).read().errors
    assert "another key" in wrong.message


def test_a_sealed_secret_in_the_file_of_another_is_none(stores: Stores) -> None:
    apply_to(stores.open(stores.sealed), secret("one"), secret("two"))
    one, two = sorted(stores.sealed.directory.iterdir())
    two.write_bytes(one.read_bytes())
    read = stores.open(stores.sealed).read()
    assert ([item.object.metadata.name for item in read.objects], len(read.errors)) == (["one"], 1)


@pytest.mark.parametrize("before", ["Memory", "Encrypted"])
def test_another_setting_takes_the_secrets_along(stores: Stores, before: str) -> None:
    places: tuple[SecretPlace, SecretPlace] = (MemoryPlace(stores.memory), stores.sealed)
    source, target = places if before == "Memory" else (places[1], places[0])
    first = secret(stringData={"password": PLANTED})
    apply_to(stores.open(source), first)
    patched(stores.open(source), LOGIN, "merge", b'{"metadata":{"labels":{"a":"b"}}}')
    for _ in range(2):
        carry_over(source, target)
        (found,) = stores.open(target).read().objects
        assert found.object.metadata.labels == {"a": "b"}
    assert stores.open(source).read().objects == ()
    assert [path for path in source.directory.parent.glob("*/secret_*") if "sealed" in path.parent.name] == (
        [] if before == "Encrypted" else list(source.directory.parent.glob("sealed*/secret_*"))
    )
    assert apply_to(stores.open(target), first) == ("secret/login unchanged",)


def test_a_secret_that_cannot_be_moved_stays_and_is_told(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    apply_to(stores.open(stores.sealed), secret("one"), secret("two"))
    one, two = sorted(stores.sealed.directory.iterdir())
    two.write_bytes(b"{}")
    carry_over(stores.sealed, MemoryPlace(stores.memory))
    assert (one.exists(), two.exists()) == (False, True)
    assert [item.object.metadata.name for item in stores.open().read().objects] == ["one"]
    (told,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert str(two) in told


def test_what_the_new_place_has_is_newer(stores: Stores) -> None:
    apply_to(stores.open(), secret(stringData={"password": "old"}))
    apply_to(stores.open(stores.sealed), secret(stringData={"password": "new"}))
    carry_over(MemoryPlace(stores.memory), stores.sealed)
    (found,) = stores.open(stores.sealed).read().objects
    assert isinstance(found.object, Secret)
    assert found.object.data["password"] == b"new"
    assert not list(stores.memory.iterdir())
