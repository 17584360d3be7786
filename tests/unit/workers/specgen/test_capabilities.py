"""Capabilities as a manifest names them, in changes that Podman takes."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.v1.security import Capabilities
from workers.specgen.security_context import KNOWN, capability_changes


@pytest.mark.parametrize(
    ("add", "drop", "expected"),
    [
        ((), (), {}),
        (("NET_RAW",), (), {"cap_add": ["NET_RAW"]}),
        ((), ("CHOWN", "KILL"), {"cap_drop": ["CHOWN", "KILL"]}),
        (("CAP_NET_RAW", "sys_time"), (), {"cap_add": ["NET_RAW", "SYS_TIME"]}),
        (("ALL",), (), {"cap_add": ["ALL"]}),
        (("all", "KILL"), (), {"cap_add": ["ALL"]}),
        ((), ("ALL",), {"cap_drop": ["ALL"]}),
        ((), ("ALL", "KILL"), {"cap_drop": ["ALL"]}),
        (("NET_BIND_SERVICE",), ("ALL",), {"cap_add": ["NET_BIND_SERVICE"], "cap_drop": ["ALL"]}),
        (("KILL", "CHOWN"), ("KILL",), {"cap_add": ["CHOWN"], "cap_drop": ["KILL"]}),
        (("ALL", "KILL", "CHOWN"), ("ALL", "CHOWN"), {"cap_add": ["KILL"], "cap_drop": ["ALL"]}),
        (("ALL",), ("SYS_ADMIN",), {"cap_add": sorted(KNOWN - {"SYS_ADMIN"}), "cap_drop": ["SYS_ADMIN"]}),
        (("NO_SUCH",), (), {"cap_add": ["NO_SUCH"]}),
    ],
)
def test_what_is_added_and_dropped(add: tuple[str, ...], drop: tuple[str, ...], expected: dict[str, Any]) -> None:
    assert capability_changes(Capabilities(add=add, drop=drop)) == expected
