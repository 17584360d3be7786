"""Options of a volume whose root is given to a pod's group: Podman must not give it to its first user."""

from __future__ import annotations

import pytest

from workers.volumemanager.plugins.claim import owned_options


@pytest.mark.parametrize(
    ("stated", "options"),
    [
        ({}, {"o": "uid=0"}),
        ({"o": "nodev"}, {"o": "uid=0,nodev"}),
        ({"o": "size=1M,uid=7"}, {"o": "size=1M,uid=7"}),
        ({"device": "/srv", "type": "none", "o": "bind"}, {"device": "/srv", "type": "none", "o": "uid=0,bind"}),
    ],
)
def test_a_volume_of_a_group_has_an_owner(stated: dict[str, str], options: dict[str, str]) -> None:
    assert owned_options(stated) == options
