"""The source of a cluster's pods: what is whole, and what was restored while it is not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

import msgspec
import pytest

from ipc.host.clock import Instant
from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.support.warnings import field_warnings
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.status import PodCondition, PodStatus
from ipc.link.messages.cluster import PodsListed, PodStated, PodWithdrawn, ReferencesRead
from supervisor.protocol.manifests import FILE_SOURCE, DesiredPod, ManifestPod, SourceSnapshot
from supervisor.protocol.source_updates import PodOperation, PodsIncomplete, PodUpdate, Update
from supervisor.sources.api_source import ApiSource
from supervisor.sources.objects.merge import PodConfig

NOW = Instant(wall=1_700_000_000.0, mono=1.0)


def pod(uid: str = "u1", name: str = "web", *, deleted: str | None = None, status: PodStatus | None = None) -> Pod:
    metadata = ObjectMeta(name=name, namespace="default", uid=uid, generation=1, deletion_timestamp=deleted)
    spec = PodSpec(containers=(Container(name="main", image="busybox"),))
    return Pod(api_version="v1", kind="Pod", metadata=metadata, spec=spec, status=status or PodStatus())


async def test_nothing_is_stated_before_the_list_has_ended() -> None:
    source = ApiSource()
    source.take(PodStated(pod=pod()))
    waiting = asyncio.ensure_future(source.changed())
    await asyncio.sleep(0)
    assert not waiting.done()
    source.take(PodsListed())
    snapshot = await waiting
    assert snapshot.complete
    assert [item.pod.metadata.uid for item in snapshot.pods] == ["u1"]
    assert source.take_listed()
    assert not source.take_listed()


async def test_a_new_life_of_the_process_states_a_new_set_when_it_is_whole() -> None:
    source = ApiSource()
    source.take(PodStated(pod=pod()))
    source.take(PodsListed())
    await source.changed()
    source.begin()
    source.take(PodStated(pod=pod("u2", "other")))
    assert [item.pod.metadata.uid for item in source.snapshot().pods] == ["u1"]
    source.take(PodsListed())
    assert [item.pod.metadata.uid for item in source.snapshot().pods] == ["u2"]
    source.take(PodWithdrawn(uid="u2"))
    assert (await source.changed()).pods == ()


def operations(config: PodConfig, source: ApiSource) -> list[tuple[PodOperation, list[str]]]:
    updates = config.merge(source.snapshot(), NOW)
    return [(each.op, [p.metadata.uid for p in each.pods]) for each in updates if isinstance(each, PodUpdate)]


def test_what_the_server_does_becomes_what_the_loop_does() -> None:
    """pkg/kubelet/config/config.go, checkAndUpdatePod."""
    config, source = PodConfig((API_SOURCE,)), ApiSource()
    source.take(PodStated(pod=pod()))
    source.take(PodsListed())
    assert operations(config, source) == [(PodOperation.ADD, ["u1"])]
    gate = PodStatus(conditions=(PodCondition(type="example.com/gate", status="True"),))
    source.take(PodStated(pod=pod(status=gate)))
    assert operations(config, source) == [(PodOperation.RECONCILE, ["u1"])]
    source.take(PodStated(pod=pod(deleted="2026-01-01T00:00:00Z", status=gate)))
    assert operations(config, source) == [(PodOperation.DELETE, ["u1"])]
    source.take(PodWithdrawn(uid="u1"))
    source.take(PodStated(pod=pod("u2")))
    assert operations(config, source) == [(PodOperation.REMOVE, ["u1"]), (PodOperation.ADD, ["u2"])]


def test_a_restored_pod_stays_until_the_server_was_read() -> None:
    config, source = PodConfig((API_SOURCE,)), ApiSource()
    (restored,) = config.restore([DesiredPod(source=API_SOURCE, pod=pod())])
    assert isinstance(restored, PodUpdate)
    assert restored.op is PodOperation.RESTORE
    assert not config.all_ready()
    source.take(PodsListed())
    assert operations(config, source)[0] == (PodOperation.REMOVE, ["u1"])
    assert config.all_ready()


def test_the_priority_of_a_pod_is_the_servers() -> None:
    """No class of that name is known here, and none is missed."""
    config, source = PodConfig((API_SOURCE,)), ApiSource()
    spec = msgspec.structs.replace(pod().spec, priority_class_name="batch", priority=7, preemption_policy="Never")
    source.take(PodStated(pod=msgspec.structs.replace(pod(), spec=spec)))
    source.take(PodsListed())
    (update,) = [each for each in config.merge(source.snapshot(), NOW) if isinstance(each, PodUpdate)]
    assert [(found.spec.priority_class_name, found.spec.priority) for found in update.pods] == [("batch", 7)]
    assert field_warnings(update.pods[0]) == ()


def test_pods_of_which_not_everything_was_read_are_told_before_they_come_and_when_it_was() -> None:
    config, source = PodConfig((API_SOURCE,)), ApiSource()
    source.take(PodsListed())
    config.merge(source.snapshot(), NOW)
    source.take(PodStated(pod=pod(), awaits=True))
    source.take(PodStated(pod=pod("u2", "other")))
    first, then = config.merge(source.snapshot(), NOW)
    assert first == PodsIncomplete(frozenset({"u1"}))
    assert isinstance(then, PodUpdate)
    source.take(ReferencesRead(uid="u1"))
    assert config.merge(source.snapshot(), NOW) == (PodsIncomplete(frozenset()),)
    source.take(PodStated(pod=pod("u3", "third"), awaits=True))
    source.take(PodWithdrawn(uid="u3"))
    assert config.merge(source.snapshot(), NOW) == ()


def change_something(rng: random.Random, source: ApiSource, there: dict[str, Pod], number: int) -> None:
    """One message of a cluster that makes pods of a few names, edits them and takes them away."""
    act = rng.choice(("come", "come", "edit", "tell", "go", "list anew"))
    if act == "come" or not there:
        made = pod(f"u{number}", f"pod-{rng.randrange(6)}")
        there[made.metadata.uid] = made
        source.take(PodStated(pod=made))
        return
    uid = rng.choice(sorted(there))
    if act == "go":
        del there[uid]
        source.take(PodWithdrawn(uid=uid))
    elif act == "list anew":
        source.begin()
        for each in there.values():
            source.take(PodStated(pod=each))
        source.take(PodsListed())
    else:
        old = there[uid]
        labels = {"edit": str(number)} if act == "edit" else old.metadata.labels
        there[uid] = msgspec.structs.replace(
            old,
            metadata=msgspec.structs.replace(old.metadata, labels=labels),
            status=PodStatus(message=str(number)),
        )
        source.take(PodStated(pod=there[uid]))


@pytest.mark.parametrize("seed", range(20))
def test_a_merge_of_what_has_changed_is_that_of_everything(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are claimed twice, given up and taken, also within what one merge sees."""
    rng, source, there = random.Random(seed), ApiSource(), dict[str, Pod]()
    quick, whole = PodConfig((API_SOURCE, FILE_SOURCE)), PodConfig((API_SOURCE, FILE_SOURCE))
    monkeypatch.setattr(whole, "_merge_few", lambda *_: None)
    source.take(PodsListed())
    for number in range(60):
        for part in range(rng.randrange(1, 4)):
            change_something(rng, source, there, 10 * number + part)
        snapshot = source.snapshot()
        if rng.random() < 0.2:
            held = ManifestPod(pod=pod("file", f"pod-{rng.randrange(6)}"), file="a.yaml")
            snapshot = SourceSnapshot(source=FILE_SOURCE, pods=(held,), complete=True)
        assert _by_operation(quick.merge(snapshot, NOW)) == _by_operation(whole.merge(snapshot, NOW))
        assert _by_uid(quick) == _by_uid(whole)
        assert quick.conflicts() == whole.conflicts()


def _by_uid(config: PodConfig) -> dict[str, DesiredPod]:
    return {item.pod.metadata.uid: item for item in config.desired()}


def _by_operation(updates: Iterable[Update]) -> list[tuple[PodOperation, dict[str, Pod]]]:
    return [(each.op, {p.metadata.uid: p for p in each.pods}) for each in updates if isinstance(each, PodUpdate)]


def test_each_of_a_burst_of_pods_costs_the_others_nothing() -> None:
    config, source = PodConfig((API_SOURCE,)), ApiSource()
    source.take(PodsListed())
    for number in range(50):
        source.take(PodStated(pod=pod(f"u{number}", f"pod-{number}")))
    config.merge(source.snapshot(), NOW)
    source.take(PodStated(pod=pod("late", "late")))
    (added,) = config.merge(source.snapshot(), NOW)
    assert isinstance(added, PodUpdate)
    assert (added.op, [each.metadata.uid for each in added.pods]) == (PodOperation.ADD, ["late"])
    assert config.merge(source.snapshot(), NOW) == ()
