"""The record of a pod's claims: the sync goes on to mount them inside Podman's namespaces, which there are none of."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.k8s.api.v1.container import VolumeMount
from ipc.k8s.api.v1.volume import HostPathVolumeSource, PersistentVolumeClaimVolumeSource, Volume
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podobjects.pod_claims import PodClaim
from tests.fakes.clock import simulate
from tests.support.pods import container, pod
from tests.support.sync import FakeHost
from workers.kubecontainer.mounted_claims import ClaimKind, MountedClaim, read_mounted_claims
from workers.userns.unshare import Unshare


class OutsideHost(FakeHost):
    unshare = Unshare(podman="/nonexistent")


@pytest.mark.parametrize(("is_local", "count"), [(True, 1), (False, 0)])
def test_of_the_users_directories_only_local_volumes_are_noted(tmp_path: Path, is_local: bool, count: int) -> None:
    path = str(tmp_path)
    claim = PodClaim(local_path=path) if is_local else PodClaim(host_path=HostPathVolumeSource(path=path))
    source = PersistentVolumeClaimVolumeSource(claim_name="data")
    using = pod(
        container("main", volume_mounts=(VolumeMount(name="v", mount_path="/v"),)),
        volumes=(Volume(name="v", persistent_volume_claim=source),),
    )

    async def scenario() -> None:
        host = OutsideHost(tmp_path / "logs")
        await host.sync(using, objects=ConfigObjects(claims={"data": claim}))
        expected = (MountedClaim(volume="v", claim="data", kind=ClaimKind.LOCAL, path=path),) * count
        assert read_mounted_claims(str(host.pods_dir), using.metadata.uid) == expected

    simulate(scenario)
