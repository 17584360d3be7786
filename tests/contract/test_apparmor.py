"""A fact that admission relies on: Podman gives a rootless container no AppArmor profile, whatever is loaded."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.podman_service import COMMAND_DEADLINE_S, PodmanService
from workers.kubecontainer.labels import INSTANCE

pytestmark = pytest.mark.podman

LOADED: Final = Path("/sys/kernel/security/apparmor/policy/profiles")
"""A directory for each, called NAME.NUMBER; absent where the kernel has no AppArmor."""


def create(service: PodmanService, profile: str) -> subprocess.CompletedProcess[str]:
    label = f"--label={INSTANCE}={service.new_instance()}"
    command = ["podman", "create", label, f"--security-opt=apparmor={profile}", service.image, "true"]
    return subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_DEADLINE_S, check=False)


def a_profile() -> str:
    """One that is loaded, if any is."""
    names = sorted(found.name for found in LOADED.iterdir()) if LOADED.is_dir() else []
    return names[0].rpartition(".")[0] if names else "nothing-is-loaded"


def test_podman_refuses_every_profile_but_unconfined(podman_service: PodmanService) -> None:
    refused = create(podman_service, a_profile())
    assert refused.returncode != 0
    assert "Apparmor is not enabled" in refused.stderr
    taken = create(podman_service, "unconfined")
    assert taken.returncode == 0, taken.stderr
    subprocess.run(["podman", "rm", taken.stdout.strip()], timeout=COMMAND_DEADLINE_S, check=True, capture_output=True)
