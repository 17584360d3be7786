"""Mounts of a pod for a claim: what it is bound to, or nothing yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE, is_api_pod
from ipc.k8s.api.v1.container import VolumeMount
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import EphemeralVolumeSource, HostPathVolumeSource, PersistentVolumeClaimVolumeSource, Volume
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.k8s.podobjects.config_objects import ConfigObjects, ObjectKind, ObjectRef
from ipc.k8s.podobjects.pod_claims import PodClaim
from ipc.link.messages.pod_worker import SyncDone
from tests.fakes.clock import simulate
from tests.support.pods import container, pod
from tests.support.sync import FakeHost
from workers.kubecontainer.mounted_claims import ClaimKind, read_mounted_claims, write_mounted_claims

NO_DIRECTORY = HostPathVolumeSource(path="/dev/null", type="Directory")
UNKNOWN = frozenset({ObjectRef(ObjectKind.PERSISTENT_VOLUME_CLAIM, "data")})


def using_data() -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name="data")
    return pod(
        container("main", volume_mounts=(VolumeMount(name="v", mount_path="/v"),)),
        volumes=(Volume(name="v", persistent_volume_claim=source),),
    )


def synced(tmp_path: Path, claims: Mapping[str, PodClaim], unknown: frozenset[ObjectRef] = frozenset()) -> SyncDone:
    return _synced(tmp_path, using_data(), ConfigObjects(claims=claims, unknown=unknown))


def _synced(tmp_path: Path, wanted: Pod, objects: ConfigObjects) -> SyncDone:
    answers: list[SyncDone] = []

    async def scenario() -> None:
        host = FakeHost(tmp_path / "logs")
        answers.append(await host.sync(wanted, objects=objects))
        volumes.extend(host.podman.volumes)

    volumes: list[str] = []
    simulate(scenario)
    assert not is_api_pod(wanted) or not volumes, "no claim of a cluster's is a volume of Podman's"
    return answers[0]


def of_cluster(wanted: Pod) -> Pod:
    metadata = msgspec.structs.replace(wanted.metadata, annotations={CONFIG_SOURCE: API_SOURCE})
    return msgspec.structs.replace(wanted, metadata=metadata)


def using_ephemeral() -> Pod:
    volume = Volume(name="v", ephemeral=EphemeralVolumeSource())
    return msgspec.structs.replace(using_data(), spec=msgspec.structs.replace(using_data().spec, volumes=(volume,)))


@pytest.mark.parametrize("claims", [{}, {"data": PodClaim(volume="pvc-1", podman_volume="data")}])
def test_a_podman_volume(tmp_path: Path, claims: Mapping[str, PodClaim]) -> None:
    assert synced(tmp_path, claims).error == ""


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (PodClaim(problem="error processing PVC default/data: PVC is not bound"), "PVC is not bound"),
        (PodClaim(volume="pv", local_path="/nowhere/at/all"), "hostPath /nowhere/at/all doesn't exist"),
        (
            PodClaim(volume="pv", host_path=HostPathVolumeSource(path="/dev/null", type="Directory")),
            "is not a directory",
        ),
    ],
)
def test_a_pod_waits_for_what_cannot_be_mounted(tmp_path: Path, claim: PodClaim, words: str) -> None:
    done = synced(tmp_path, {"data": claim})
    assert done.error == "FailedMount"
    assert done.message.startswith('MountVolume.SetUp failed for volume "v" : ')
    assert words in done.message


def test_a_pod_waits_while_nobody_knows_whether_there_is_a_claim(tmp_path: Path) -> None:
    done = synced(tmp_path, {}, UNKNOWN)
    assert (done.error, 'claim "data" is not known' in done.message) == ("FailedMount", True)
    assert done.summary.endswith("nothing could be done yet (FailedMount)")


def test_where_a_claims_files_lie_is_noted_for_the_statistics(tmp_path: Path) -> None:
    """Also when a running container uses the volume, and what was noted is gone."""

    async def scenario() -> None:
        host, uid = FakeHost(tmp_path / "logs"), using_data().metadata.uid
        await host.sync(using_data(), objects=ConfigObjects())
        (first,) = noted = read_mounted_claims(str(host.pods_dir), uid)
        assert (first.volume, first.claim, first.kind) == ("v", "data", ClaimKind.PODMAN)
        assert first.path
        write_mounted_claims(str(host.pods_dir), uid, ())
        await host.sync(using_data(), objects=ConfigObjects())
        assert read_mounted_claims(str(host.pods_dir), uid) == noted

    simulate(scenario)


@pytest.mark.parametrize("wanted", [using_data(), using_ephemeral()], ids=["claim", "ephemeral"])
def test_a_pod_of_a_cluster_gets_what_the_cluster_says_of_its_claim(tmp_path: Path, wanted: Pod) -> None:
    """A document of that name means nothing to it, and neither does a volume of Podman's."""
    documents = {"data": PodClaim(volume="pvc-1", podman_volume="data")}
    pod_of_cluster = of_cluster(wanted)

    def said(cluster: ClusterValues | None) -> tuple[str, str]:
        done = _synced(tmp_path, pod_of_cluster, ConfigObjects(claims=documents, cluster=cluster))
        return done.error, done.message

    error, message = said(ClusterValues(claims={"v": PodClaim(volume="pv", local_path="/nowhere/at/all")}))
    assert (error, "hostPath /nowhere/at/all doesn't exist" in message) == ("FailedMount", True)
    for untold in (None, ClusterValues()):
        error, message = said(untold)
        assert error == "FailedMount"
        assert "the cluster has not said anything of it since this agent began" in message
    error, message = said(ClusterValues(claims={"v": PodClaim(problem="PVC is not bound")}))
    assert (error, "PVC is not bound" in message) == ("FailedMount", True)
