"""Versions of services, and whether they make a container with the OCI runtime that is asked for."""

from __future__ import annotations

import pytest

from workers.oci_runtimes import acts_on_runtime


@pytest.mark.parametrize(
    ("version", "acts"),
    [
        ("", False),
        ("4.3.1", False),
        ("5.8.6", False),
        ("5.10.0", False),
        ("6", False),
        ("6.0.9", False),
        ("6.1.0", True),
        ("6.1.1-rc1", True),
        ("6.10", True),
        ("7.0.0", True),
        ("10.0.0", True),
        ("none", False),
    ],
)
def test_a_version(version: str, acts: bool) -> None:
    assert acts_on_runtime(version) is acts
