"""Mounts of a pod for a claim: what it is bound to, or nothing yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ipc.api.v1.container import VolumeMount
from ipc.api.v1.pod import Pod
from ipc.api.v1.volume import HostPathVolumeSource, PersistentVolumeClaimVolumeSource, Volume
from ipc.kubecontainer.config_objects import ConfigObjects, ObjectKind, ObjectRef
from ipc.kubecontainer.pod_claims import PodClaim
from ipc.messages.pod_worker import SyncDone
from tests.fakes.clock import simulate
from tests.harness.pods import container, pod
from tests.harness.sync import FakeHost
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
    answers: list[SyncDone] = []

    async def scenario() -> None:
        host = FakeHost(tmp_path / "logs")
        answers.append(await host.sync(using_data(), objects=ConfigObjects(claims=claims, unknown=unknown)))

    simulate(scenario)
    return answers[0]


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
