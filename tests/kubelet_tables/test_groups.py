"""The groups that are answered for pass in full."""

from __future__ import annotations

import pytest

from tests.kubelet_tables.runner import DEFAULT_FILE, adapters, load_cases, run_group

pytestmark = pytest.mark.skipif(not DEFAULT_FILE.exists(), reason=f"{DEFAULT_FILE} is not there")


@pytest.mark.parametrize("group", sorted(adapters()))
def test_group_passes(group: str) -> None:
    report = run_group(group, load_cases(DEFAULT_FILE)[group], adapters()[group])
    assert report.failures == ()
    assert report.passed
