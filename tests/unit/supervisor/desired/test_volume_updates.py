"""Claims and volumes in the sync loop: what goes along with a sync, whom a binding wakes, and what is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from ipc.k8s.api.v1.volume import HostPathVolumeSource, PersistentVolumeClaimVolumeSource, Volume
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind, ObjectRef
from ipc.k8s.podobjects.pod_claims import PodClaim
from ipc.link.messages.cluster import PodValuesStated
from ipc.link.messages.node_worker import VolumeDeleted
from ipc.link.messages.sync_error import SyncError
from supervisor.desired.volume_updates import ASK_AGAIN_S
from supervisor.managers.object_delivery import SOURCES_PATIENCE_S
from supervisor.protocol.commands import NOTHING, RestsOn
from supervisor.protocol.events import BindingsRestored
from supervisor.protocol.source_updates import ObjectsExpected
from tests.support.dialogue import Talk, pod, running
from tests.unit.supervisor.persistentvolume.test_matching import claim, volume

FAILED: Any = {"error": SyncError.FAILED_MOUNT}
ONE: Any = ("ReadWriteOncePod",)
OF_CLASS: Any = {"storage_class_name": "disk"}


def using(uid: str, name: str = "c") -> Pod:
    plain = pod(uid)
    source = PersistentVolumeClaimVolumeSource(claim_name=name)
    spec = msgspec.structs.replace(plain.spec, volumes=(Volume(name="data", persistent_volume_claim=source),))
    return msgspec.structs.replace(plain, spec=spec)


def mine(**spec: Any) -> Any:
    return claim(namespace="default", **{**OF_CLASS, **spec})


def got(talk: Talk, uid: str) -> PodClaim | None:
    return talk.syncs[uid].objects.claims.get("c")


def phases(talk: Talk) -> dict[str, str]:
    return {binding.volume: str(binding.phase) for binding in talk.loop.durable.volumes.bindings}


@pytest.fixture
def talk() -> Talk:
    made = Talk()
    made.ready()
    made.relist()
    return made


def test_a_pod_gets_the_volume_of_its_claim(talk: Talk) -> None:
    bound = volume("a", **OF_CLASS)
    talk.state(bound, mine())
    talk.add(using("u"))
    assert got(talk, "u") == PodClaim(volume="a", host_path=bound.spec.host_path)
    assert talk.rests_on["u"] == RestsOn(bindings=talk.loop.durable.volumes.version)
    talk.add(using("v", "no-document"))
    assert talk.rests_on["v"] == NOTHING
    assert talk.syncs["v"].objects.claims == {}
    assert talk.syncs["v"].objects.unknown == frozenset()


def test_a_pod_waits_for_its_claim_and_is_synced_when_that_is_bound(talk: Talk) -> None:
    talk.state(mine())
    talk.add(using("u"))
    found = got(talk, "u")
    assert found is not None
    assert found.problem == (
        'error processing PVC default/c: PVC is not bound: storageclass.storage.k8s.io "disk" not found'
    )
    talk.done("u", **FAILED)
    talk.state(volume("a", **OF_CLASS))
    talk.relist()
    assert got(talk, "u") == PodClaim(volume="a", host_path=volume("a").spec.host_path)


def test_nothing_is_bound_before_every_source_was_read() -> None:
    talk = Talk()
    talk.relist()
    talk.state(mine(), volume("a", **OF_CLASS))
    assert phases(talk) == {}
    talk.ready()
    assert phases(talk) == {"a": "Bound"}


def test_bindings_of_the_agent_before_hold_until_the_documents_were_read() -> None:
    first = Talk()
    first.ready()
    first.state(volume("a", "9Gi", **OF_CLASS), mine())
    talk = Talk()
    talk.say(BindingsRestored(first.loop.durable.volumes.bindings))
    expected = ObjectKey(ObjectKind.PERSISTENT_VOLUME_CLAIM, "default", "c")
    talk.say(ObjectsExpected(frozenset({expected})))
    talk.relist()
    talk.state(volume("smaller", **OF_CLASS))
    talk.ready()
    talk.add(using("u"))
    talk.tick(after_s=2 * SOURCES_PATIENCE_S)
    assert talk.syncs["u"].objects.unknown == {ObjectRef(ObjectKind.PERSISTENT_VOLUME_CLAIM, "c")}
    talk.state(volume("a", "9Gi", **OF_CLASS), mine())
    talk.say(ObjectsExpected(frozenset()))
    assert phases(talk) == {"a": "Bound"}


def test_a_claim_goes_when_the_last_pod_that_uses_it_has_ended(talk: Talk) -> None:
    talk.state(volume("a", **OF_CLASS), mine())
    talk.add(using("u"))
    talk.done("u", changed=True)
    talk.see(running("u"))
    talk.retract(mine())
    talk.tick()
    assert phases(talk) == {"a": "Bound"}
    talk.add(msgspec.structs.replace(using("late"), metadata=_made_later(using("late"))))
    late = got(talk, "late")
    assert late is not None
    assert late.problem == "error processing PVC default/c: PVC is being deleted"
    talk.remove("late")
    talk.remove("u")
    talk.tick()
    assert phases(talk) == {"a": "Bound"}


def _made_later(made: Pod) -> Any:
    return msgspec.structs.replace(made.metadata, creation_timestamp="2999-01-01T00:00:00Z")


def test_the_content_of_a_volume_is_deleted_by_its_policy_and_it_is_free_again(talk: Talk) -> None:
    below_tmp = volume("a", policy="Delete", **OF_CLASS)
    source = HostPathVolumeSource(path="/tmp/a")
    below_tmp = msgspec.structs.replace(below_tmp, spec=msgspec.structs.replace(below_tmp.spec, host_path=source))
    talk.state(below_tmp, mine())
    assert talk.retract(mine()) == ["delete volume a at /tmp/a"]
    assert talk.rests_on["a"] == RestsOn(bindings=talk.loop.durable.volumes.version), "it is nobody's by then"
    assert phases(talk) == {"a": "Released"}
    assert talk.tick() == []
    assert talk.tick(after_s=ASK_AGAIN_S) == ["delete volume a at /tmp/a"]
    talk.say(VolumeDeleted(volume="a"))
    assert phases(talk) == {}
    talk.state(mine())
    talk.retract(mine())
    talk.say(VolumeDeleted(volume="a", problem="busy"))
    assert phases(talk) == {"a": "Failed"}
    assert talk.tick(after_s=ASK_AGAIN_S) == []


@pytest.mark.parametrize("elsewhere", [volume("a", policy="Delete", **OF_CLASS)])
def test_a_volume_that_nobody_may_delete_has_failed(talk: Talk, elsewhere: Any) -> None:
    talk.state(elsewhere, mine())
    talk.retract(mine())
    assert phases(talk) == {"a": "Failed"}
    (binding,) = talk.loop.durable.volumes.bindings
    assert binding.message == "host_path deleter only supports /tmp/.+ but received provided /a"


def test_a_claim_for_one_pod_is_that_pods_until_it_has_ended(talk: Talk) -> None:
    talk.state(volume("a", modes=ONE, **OF_CLASS), mine(modes=ONE))
    talk.add(using("first"))
    talk.add(using("second"))
    assert got(talk, "first") == PodClaim(volume="a", host_path=volume("a").spec.host_path)
    second = got(talk, "second")
    assert second is not None
    assert second.problem == "volume uses the ReadWriteOncePod access mode and is already in use by another pod"


def test_a_claim_for_one_pod_is_the_one_that_ran_before_the_agent_began(talk: Talk) -> None:
    talk.state(volume("a", modes=ONE, **OF_CLASS), mine(modes=ONE))
    talk.relist(running("was-there"))
    talk.add(using("new"), using("was-there"))
    found = got(talk, "new")
    assert found is not None
    assert found.problem.startswith("volume uses the ReadWriteOncePod access mode")


# --- claims of a cluster -----------------------------------------------------------------------------------------


def of_cluster(uid: str, name: str = "c") -> Pod:
    wanted = using(uid, name)
    metadata = msgspec.structs.replace(wanted.metadata, annotations={CONFIG_SOURCE: API_SOURCE})
    return msgspec.structs.replace(wanted, metadata=metadata)


def given(talk: Talk, uid: str) -> PodClaim:
    values = talk.syncs[uid].objects.cluster
    assert values is not None
    return values.claims["data"]


def say(talk: Talk, uid: str, found: PodClaim) -> None:
    talk.say(PodValuesStated(uid=uid, values=ClusterValues(claims={"data": found})))


def nodes(name: str) -> NodeSelector:
    term = NodeSelectorRequirement(key="kubernetes.io/hostname", operator="In", values=(name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(term,)),))


def test_a_pod_of_a_cluster_has_no_claim_of_a_document(talk: Talk) -> None:
    talk.state(volume("a", **OF_CLASS), mine())
    found = PodClaim(volume="pv", local_path="/srv")
    say(talk, "u", found)
    talk.add(of_cluster("u"))
    assert given(talk, "u") == found
    assert talk.syncs["u"].objects.claims == {}
    assert talk.syncs["u"].objects.unknown == frozenset()


def test_a_volume_of_another_node_is_not_mounted_here(talk: Talk) -> None:
    """A pod that names its node passes no scheduler."""
    say(talk, "u", PodClaim(volume="pv", local_path="/srv", nodes=nodes("elsewhere")))
    talk.add(of_cluster("u"))
    assert given(talk, "u") == PodClaim(
        problem='NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms'
    )


def test_a_claim_for_one_pod_is_the_clusters_too(talk: Talk) -> None:
    single = PodClaim(volume="pv", local_path="/srv", is_for_one_pod=True)
    for uid in ("u", "v"):
        say(talk, uid, single)
        talk.add(of_cluster(uid))
        talk.done(uid, changed=True)
    talk.see(running("u"))
    assert given(talk, "u").local_path == "/srv"
    assert given(talk, "v").problem.startswith("volume uses the ReadWriteOncePod access mode")
    talk.state(volume("a", modes=ONE, **OF_CLASS), mine(modes=ONE))
    talk.add(using("w"))
    found = got(talk, "w")
    assert found is not None
    assert not found.problem, "a document's claim of that name is another one"
