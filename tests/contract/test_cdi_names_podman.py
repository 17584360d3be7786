"""Names of CDI devices: what the configuration takes for one, Podman does, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.podman_service import IMAGE, PodmanService
from tests.support.raw_libpod import Libpod
from tests.unit.supervisor.config.test_cdi_specs import NOT_PARSED, PARSED
from workers.kubecontainer.labels import INSTANCE

pytestmark = pytest.mark.podman


@pytest.fixture
def libpod(podman_service: PodmanService) -> Iterator[Libpod]:
    made = Libpod(podman_service.socket)
    yield made
    made.close()


def created(libpod: Libpod, instance: str, device: str) -> str:
    """A container that asks for that device: its id."""
    body = {"image": IMAGE, "command": ["true"], "labels": {INSTANCE: instance}, "devices": [{"path": device}]}
    return str(libpod.call("POST", "containers/create", body)["Id"])


@pytest.mark.parametrize("name", PARSED)
def test_podman_looks_for_the_device_of_a_name_that_is_taken(
    libpod: Libpod, podman_service: PodmanService, name: str
) -> None:
    id = created(libpod, podman_service.new_instance(), name)
    with pytest.raises(AssertionError, match=f"unresolvable CDI devices {name}"):
        libpod.call("POST", f"containers/{id}/start")


@pytest.mark.parametrize("name", NOT_PARSED)
def test_podman_knows_no_device_of_a_name_that_is_refused(
    libpod: Libpod, podman_service: PodmanService, name: str
) -> None:
    with pytest.raises(AssertionError, match=r"no such file or directory|slice bounds out of range"):
        created(libpod, podman_service.new_instance(), name)
