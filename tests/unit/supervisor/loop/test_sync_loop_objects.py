"""ConfigMaps and Secrets in the sync loop: what goes along with a sync, and whom a change concerns."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.decode import MAX_VALUES
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.env import ConfigMapEnvSource, EnvFromSource
from ipc.k8s.api.v1.meta import LocalObjectReference, ObjectMeta
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.cluster_values import ClusterValues, PodToken, TokenRequest
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind, ObjectRef
from ipc.link.messages.cluster import PodValuesStated
from ipc.link.messages.pod_worker import SyncAction, SyncPod, SyncResult
from ipc.link.messages.sync_error import SyncError
from ipc.link.wire.framing import MAX_FRAME_BYTES
from supervisor.config.settings import ClusterSection
from supervisor.managers.object_delivery import MAX_WORKER_BYTES, SOURCES_PATIENCE_S
from supervisor.managers.object_store import MAX_POD_BYTES
from supervisor.processes.worker_pool import API_SLOT, NODE_SLOT
from supervisor.protocol.source_updates import ObjectsExpected, PodsIncomplete
from supervisor.record.object_summary import MAX_SHOWN_BYTES, MAX_SHOWN_KEYS
from supervisor.sources.objects.kinds import MAX_ENCODED_POD_BYTES
from tests.support.dialogue import POD_SLOT, Talk, absent, exited, pod, running

MIB = 1 << 20
LONGEST_HEADER_BYTES = 32
"""Bytes that a field adds to a message beside its text."""
WAITS = SyncResult(action=SyncAction.START_CONTAINER, target="main", error=SyncError.CREATE_CONTAINER_CONFIG)


def config_map(name: str, text: str = "x", *, namespace: str = "default", **fields: Any) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data={"key": text}, **fields)


def secret(name: str, text: bytes = b"hush") -> Secret:
    return Secret(metadata=ObjectMeta(name=name, namespace="default"), data={"key": text}, type="Opaque")


def using(uid: str, *config_maps: str, pull_secrets: tuple[str, ...] = ()) -> Pod:
    """A pod whose container takes all of these as its environment."""
    plain = pod(uid)
    sources = tuple(EnvFromSource(config_map_ref=ConfigMapEnvSource(name=name)) for name in config_maps)
    (main,) = plain.spec.containers
    spec = msgspec.structs.replace(
        plain.spec,
        containers=(msgspec.structs.replace(main, env_from=sources),),
        image_pull_secrets=tuple(LocalObjectReference(name=name) for name in pull_secrets),
    )
    return msgspec.structs.replace(plain, spec=spec)


def got(talk: Talk, uid: str) -> set[str]:
    """Names of what went along with the newest sync."""
    objects = talk.syncs[uid].objects
    return {*objects.config_maps, *objects.secrets}


@pytest.fixture
def talk() -> Talk:
    made = Talk()
    made.ready()
    made.relist()
    return made


def test_a_sync_has_what_its_pod_refers_to_and_nothing_else(talk: Talk) -> None:
    talk.state(config_map("mine"), config_map("other"), secret("login"), config_map("far", namespace="away"))
    talk.add(using("a", "mine", "far", "absent", pull_secrets=("login", "absent")))
    talk.relist()
    assert got(talk, "a") == {"mine", "login"}
    assert talk.syncs["a"].objects.unknown == frozenset()
    talk.add("b")
    talk.relist()
    assert got(talk, "b") == set()


def test_a_termination_takes_none_along(talk: Talk) -> None:
    talk.state(config_map("mine"))
    talk.start(using("a", "mine"))
    talk.remove(using("a", "mine"))
    talk.see(running("a"))
    assert (talk.syncs["a"].kind, got(talk, "a")) == ("terminating", set())


def test_a_change_concerns_those_that_refer_to_it(talk: Talk) -> None:
    talk.state(config_map("mine"))
    talk.start(using("a", "mine"), using("b", "other"), "c")
    # Nothing was touched since, so nobody has to look first.
    assert talk.state(config_map("mine", "changed")) == ["sync a"]
    assert talk.syncs["a"].objects.config_maps["mine"].data == {"key": "changed"}
    assert talk.done("a") == []
    assert talk.state(config_map("mine", "changed")) == []
    assert talk.state(config_map("mine", "changed", namespace="away")) == []
    assert talk.retract(config_map("mine")) == ["sync a"]
    assert got(talk, "a") == set()


def test_a_pod_that_waits_is_tried_at_once(talk: Talk) -> None:
    talk.add(using("a", "late"))
    talk.relist()
    talk.done("a", results=(WAITS,), changed=True)
    talk.see(running("a"))
    talk.done("a", results=(WAITS,))
    assert talk.tick(1.0) == []
    assert talk.state(config_map("late")) == ["observe a"]
    assert talk.see(running("a")) == ["sync a"]
    assert got(talk, "a") == {"late"}


def test_what_changes_during_a_sync_comes_with_the_next_one(talk: Talk) -> None:
    talk.state(config_map("mine"))
    talk.start(using("a", "mine"))
    talk.state(config_map("mine", "second"))
    assert talk.state(config_map("mine", "third")) == []
    assert talk.done("a") == ["observe a"]
    assert talk.see(running("a")) == ["sync a"]
    assert talk.syncs["a"].objects.config_maps["mine"].data == {"key": "third"}


def test_what_changes_during_a_sync_comes_with_the_next_one_though_its_worker_dies(talk: Talk) -> None:
    talk.state(config_map("mine"))
    talk.start(using("a", "mine"))
    talk.state(config_map("mine", "second"))
    assert talk.state(config_map("mine", "third")) == []
    assert talk.down(POD_SLOT) == ["observe a"]
    assert talk.see(running("a")) == []
    assert talk.up(POD_SLOT, 2) == ["sync a"]
    assert talk.syncs["a"].objects.config_maps["mine"].data == {"key": "third"}


# --- sources that were not read yet -----------------------------------------------------------------------------------


def test_a_pod_waits_a_moment_for_sources_that_were_not_read_yet() -> None:
    talk = Talk()
    talk.add(using("a", "mine"), "b")
    assert talk.relist() == ["sync b"]
    assert talk.tick(1.0) == []
    assert talk.state(config_map("other")) == []
    assert talk.state(config_map("mine")) == ["sync a"]


def test_what_is_missing_when_all_were_read_is_absent() -> None:
    talk = Talk()
    talk.add(using("a", "mine"))
    talk.relist()
    assert talk.ready() == ["sync a"]
    assert talk.syncs["a"].objects.unknown == frozenset()


def test_sources_that_stay_unreadable_hold_up_nothing() -> None:
    talk = Talk()
    talk.add(using("a", "mine", pull_secrets=("login",)))
    talk.state(secret("login"))
    talk.relist()
    assert "sync a" not in talk.tick(SOURCES_PATIENCE_S / 2)
    assert talk.tick(SOURCES_PATIENCE_S) == ["sync a"]
    objects = talk.syncs["a"].objects
    assert objects.unknown == {ObjectRef(ObjectKind.CONFIG_MAP, "mine")}
    assert objects.is_unknown(ObjectKind.CONFIG_MAP, "mine")
    assert not objects.is_unknown(ObjectKind.SECRET, "login")
    talk.done("a")
    assert talk.ready() == ["sync a"]
    assert talk.syncs["a"].objects.unknown == frozenset()


def test_what_is_expected_after_a_restart_is_not_absent() -> None:
    """A file cannot be read; what is missing beside it is absent."""
    talk = Talk()
    key = ObjectKey(ObjectKind.CONFIG_MAP, "default", "mine")
    talk.say(ObjectsExpected(frozenset({key})))
    talk.add(using("a", "mine", "other"), using("b", "other"))
    talk.relist()
    assert talk.ready() == ["sync b"]
    assert talk.syncs["b"].objects.unknown == frozenset()
    assert "sync a" in talk.tick(SOURCES_PATIENCE_S)
    sync = talk.syncs["a"]
    assert sync.objects.unknown == {ObjectRef(ObjectKind.CONFIG_MAP, "mine")}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(sync), type=SyncPod) == sync
    talk.done("a")
    talk.done("b")
    assert talk.say(ObjectsExpected(frozenset())) == ["sync a"]
    assert talk.syncs["a"].objects.unknown == frozenset()


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_what_a_pod_gets_has_a_maximum_and_the_rest_is_unknown(talk: Talk) -> None:
    count = MAX_POD_BYTES // MIB
    names = [f"m{number}" for number in range(count + 1)]
    talk.state(*(config_map(name, "x" * MIB) for name in names))
    talk.add(using("a", *names))
    talk.relist()
    assert len(got(talk, "a")) == count - 1
    assert {ref.name for ref in talk.syncs["a"].objects.unknown} == set(names[count - 1 :])
    assert "ObjectsTooLarge a" in talk.events
    assert f"ConfigMap {names[-1]}" in talk.logs[-1]
    assert len(msgspec.msgpack.encode(talk.syncs["a"])) < 8 * MIB


def test_the_largest_pod_with_all_that_it_may_have_fits_a_frame() -> None:
    """As many references as a pod may state, to objects that fill their room and to more of which nothing is known."""
    talk = Talk()
    names = [f"secret-{number:06}" for number in range(MAX_VALUES // 2 - 20)]
    largest = using("a", pull_secrets=tuple(names))
    padding = MAX_ENCODED_POD_BYTES - len(msgspec.msgpack.encode(largest)) - LONGEST_HEADER_BYTES
    (main,) = largest.spec.containers
    spec = msgspec.structs.replace(largest.spec, containers=(msgspec.structs.replace(main, args=("x" * padding,)),))
    talk.state(*(secret(name, bytes(MIB // 2)) for name in names[:20]))
    talk.add(msgspec.structs.replace(largest, spec=spec))
    talk.relist()
    talk.tick(SOURCES_PATIENCE_S)
    sync = talk.syncs["a"]
    rest = MAX_FRAME_BYTES - len(msgspec.msgpack.encode(sync))
    assert sync.objects.secrets
    assert len(sync.objects.unknown) > len(names) - 20
    assert rest > MAX_FRAME_BYTES // 32, "nothing is left for what was observed of it"


def test_a_workers_syncs_hold_no_more_than_a_maximum_at_a_time(talk: Talk) -> None:
    """All of them come to their turn."""
    size = 4 * MIB
    talk.state(config_map("large", "x" * size))
    room = MAX_WORKER_BYTES // size - 1
    uids = [f"p{number}" for number in range(3 * room)]
    talk.add(*(using(uid, "large") for uid in uids))
    talk.relist()
    under_way = list(talk.syncs)
    assert len(under_way) == room
    for uid in uids:
        assert uid in talk.syncs
        talk.done(uid)
    assert set(talk.syncs) == set(uids)


def test_a_dead_worker_holds_nothing(talk: Talk) -> None:
    talk.state(config_map("large", "x" * (4 * MIB)))
    talk.add(*(using(f"p{number}", "large") for number in range(8)))
    talk.relist()
    before = dict(talk.syncs)
    talk.down(POD_SLOT)
    talk.syncs.clear()
    talk.up(POD_SLOT, 2)
    talk.relist(*(running(uid) for uid in before))
    assert len(talk.syncs) == len(before)


# --- what is told -----------------------------------------------------------------------------------------------------


def test_names_and_sizes_are_told_and_no_values(talk: Talk) -> None:
    planted = b"hunter2-planted"
    annotated = ObjectMeta(name="login", namespace="default", annotations={"note": planted.decode()}, labels={"a": "b"})
    talk.state(Secret(metadata=annotated, data={"password": planted, "user": b""}, type="Opaque", immutable=True))
    summary = talk.objects["login"]
    assert summary.sizes == {"password": len(planted), "user": 0}
    assert (summary.keys, summary.size_bytes, summary.immutable) == (2, len(planted), True)
    assert summary.metadata.labels == {"a": "b"}
    assert planted not in msgspec.msgpack.encode(summary)
    talk.retract(secret("login"))
    assert talk.objects == {}


def test_of_very_many_keys_the_first_are_told(talk: Talk) -> None:
    talk.state(
        ConfigMap(metadata=ObjectMeta(name="many", namespace="default"), data=dict.fromkeys(map(str, range(999)), "é"))
    )
    summary = talk.objects["many"]
    assert (len(summary.sizes), summary.keys, summary.size_bytes) == (MAX_SHOWN_KEYS, 999, 2 * 999)


def test_long_keys_are_told_as_far_as_there_is_room(talk: Talk) -> None:
    keys = [f"{number:02}" + "k" * 250 for number in range(50)]
    talk.state(ConfigMap(metadata=ObjectMeta(name="long", namespace="default"), data=dict.fromkeys(keys, "")))
    summary = talk.objects["long"]
    assert list(summary.sizes) == keys[: MAX_SHOWN_BYTES // 252]
    assert summary.keys == 50


def test_a_new_api_server_is_told_again(talk: Talk) -> None:
    talk.state(config_map("mine"), secret("login"))
    talk.down(API_SLOT)
    talk.objects.clear()
    assert talk.up(API_SLOT, 2) == ["feed synced"]
    assert talk.objects.keys() == {"mine", "login"}


def test_a_new_node_worker_is_told_of_the_pods_where_it_speaks_to_a_cluster() -> None:
    alone, member = Talk(), Talk(cluster=ClusterSection(kubeconfig="/k"))
    for talk in (alone, member):
        talk.add("a")
        talk.down(NODE_SLOT)
        talk.told.clear()
    assert "feed synced" not in alone.up(NODE_SLOT, 2)
    assert not alone.told
    assert "feed synced" in member.up(NODE_SLOT, 2)
    assert member.told.keys() == {"a"}


# --- what a cluster gives beside objects ---------------------------------------------------------------------------


def values(token: str = "", **variables: str) -> ClusterValues:
    tokens = (PodToken(wish=TokenRequest("", 3600), token=token),) if token else ()
    return ClusterValues(service_variables=variables, tokens=tokens)


def test_values_go_along_with_the_sync_of_their_pod(talk: Talk) -> None:
    talk.say(PodValuesStated(uid="a", values=values("one", HOST="1.2.3.4")))
    talk.start("a", "b")
    assert talk.syncs["a"].objects.cluster == values("one", HOST="1.2.3.4")
    assert talk.syncs["b"].objects.cluster is None


def test_another_token_is_a_sync_and_another_variable_none(talk: Talk) -> None:
    talk.start("a")
    assert talk.say(PodValuesStated(uid="a", values=values("one"))) == ["sync a"]
    assert talk.syncs["a"].objects.cluster == values("one")
    assert talk.done("a") == []
    assert talk.say(PodValuesStated(uid="a", values=values("one", HOST="1.2.3.4"))) == []
    assert talk.say(PodValuesStated(uid="a", values=values("two", HOST="1.2.3.4"))) == ["sync a"]


def removed_and_added_again(talk: Talk) -> None:
    """``a`` runs, goes down, and is wanted again before it has gone."""
    talk.start("a")
    talk.remove("a")
    talk.add("a")


def goes(talk: Talk) -> list[str]:
    """Nothing is left of ``a``: what follows from that."""
    talk.see(running("a"))
    talk.done("a", changed=True)
    talk.see(exited("a"))
    talk.done("a", changed=True)
    return talk.see(absent("a"))


def test_what_comes_before_a_pod_that_begins_anew_is_known_of_it(talk: Talk) -> None:
    removed_and_added_again(talk)
    talk.say(PodValuesStated(uid="a", values=values("two")))
    talk.say(awaited("a"))
    assert goes(talk)[-1] == "sync a"
    assert talk.syncs["a"].objects.cluster == values("two")
    assert talk.syncs["a"].awaits


# --- pods that are stated while what they refer to is being read ---------------------------------------------------


def awaited(*uids: str) -> PodsIncomplete:
    return PodsIncomplete(frozenset(uids))


def comes(talk: Talk, *uids: str) -> None:
    """To an agent that knows everything else, and is synced for the first time."""
    talk.ready()
    talk.relist()
    talk.say(awaited("a"))
    talk.add(*uids)


def test_a_sync_waits_in_its_worker_for_what_is_being_read(talk: Talk) -> None:
    comes(talk, "a", "b")
    assert (talk.syncs["a"].awaits, talk.syncs["b"].awaits) == (True, False)
    assert talk.say(PodValuesStated(uid="a", values=values("one"))) == []
    assert talk.say(awaited()) == ["objects of a"]
    assert talk.syncs["a"].objects.cluster == values("one")
    assert "sync a" not in talk.done("a"), "what has come meanwhile was given to it"


def test_a_pod_whose_sync_has_not_waited_so_long_is_synced_when_all_was_read(talk: Talk) -> None:
    comes(talk, "a")
    assert "sync a" not in talk.done("a", error=SyncError.FAILED_MOUNT)
    talk.say(awaited())
    assert "sync a" in talk.see(absent("a"))
    assert not talk.syncs["a"].awaits


def test_a_pod_that_goes_meanwhile_gets_nothing_more(talk: Talk) -> None:
    comes(talk, "a")
    assert "cancel a" in talk.remove("a")
    assert talk.say(awaited()) == []
