"""Facts about a good host, for `rootlet doctor`, and what its findings say against one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from supervisor.config.resolution.config_file import default_settings
from supervisor.doctor.findings import Finding, Level
from supervisor.doctor.host import HostFacts, PodmanFacts

SETTINGS = default_settings()
PODMAN = PodmanFacts(
    version="4.3.1",
    mapped_ids=65537,
    storage_driver="overlay",
    images=frozenset({"quay.io/a/there:1"}),
)
GOOD = HostFacts(
    podman=PODMAN,
    user="somebody",
    sysctls={
        "kernel/keys/maxkeys": 10_000,
        "fs/inotify/max_user_instances": 1024,
        "user/max_user_namespaces": 10_000,
    },
    controllers=frozenset({"cpu", "memory", "pids"}),
    free_bytes={"stateDir": 1 << 40},
    disk_bytes={"stateDir": 2 << 40},
    programs=frozenset({"crun", "nsenter", "slirp4netns", "pasta", "newuidmap", "newgidmap"}),
)


def but(**facts: Any) -> HostFacts:
    return msgspec.structs.replace(GOOD, **facts)


def podman(**facts: Any) -> HostFacts:
    return but(podman=msgspec.structs.replace(PODMAN, **facts))


def bad(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.subject) for finding in findings if finding.level is not Level.OK]
