"""The audit log: requests that are no change."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request

from workers.api_server.audit import is_change


@pytest.mark.parametrize(
    ("method", "path", "wanted"),
    [
        ("GET", "/api/v1/pods", False),
        ("GET", "/api/v1/namespaces/default/pods/web/log", False),
        ("GET", "/api/v1/namespaces/default/pods/web/exec", True),
        ("POST", "/api/v1/namespaces/default/pods/web/portforward", True),
        ("DELETE", "/api/v1/namespaces/default/pods/web", True),
        ("POST", "/rootlet/v1/apply", True),
    ],
)
def test_what_changes_something(method: str, path: str, wanted: bool) -> None:
    assert is_change(make_mocked_request(method, path)) is wanted
