"""Options of a volume that has an owner: Podman gives it to no container's user."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.v1.security import PodSecurityContext
from tests.support.pods import container, pod
from workers.volumemanager.plugins.claim import is_for_first_user, owned_options


@pytest.mark.parametrize(
    ("stated", "options"),
    [
        ({}, {"o": "uid=0"}),
        ({"o": "nodev"}, {"o": "uid=0,nodev"}),
        ({"o": "size=1M,uid=7"}, {"o": "size=1M,uid=7"}),
        ({"o": "gid=7"}, {"o": "gid=7"}),
        ({"device": "/srv", "type": "none", "o": "bind"}, {"device": "/srv", "type": "none", "o": "uid=0,bind"}),
    ],
)
def test_a_volume_of_a_group_has_an_owner(stated: dict[str, str], options: dict[str, str]) -> None:
    assert owned_options(stated) == options


@pytest.mark.parametrize(
    ("spec", "options", "expected"),
    [
        ({}, {}, True),
        ({}, {"o": "nodev"}, True),
        ({"host_users": True}, {}, True),
        ({}, {"o": "nodev,uid=7"}, False),
        ({}, {"o": "gid=7"}, False),
        ({}, {"device": "/srv", "o": "bind"}, False),
        ({}, {"type": "tmpfs"}, False),
        ({"host_users": False}, {}, False),
        ({"security_context": PodSecurityContext(fs_group=5)}, {}, False),
        ({"security_context": PodSecurityContext(run_as_user=5)}, {}, True),
    ],
)
def test_whose_a_new_volume_is(spec: dict[str, Any], options: dict[str, str], expected: bool) -> None:
    assert is_for_first_user(pod(container("a"), **spec), options) is expected
