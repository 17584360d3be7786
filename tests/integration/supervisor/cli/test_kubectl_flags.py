"""The table beside kubectl against the real program."""

from __future__ import annotations

import shutil
from typing import Final

import pytest

from tests.kubectl_table import kubectls_flags, load, version_of

KUBECTL: Final = shutil.which("kubectl")


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl on PATH")
def test_the_table_has_the_flags_of_the_real_kubectl() -> None:
    assert KUBECTL is not None
    table = load()
    if version_of(KUBECTL) != table.version:
        pytest.skip(f"this kubectl is {version_of(KUBECTL)}; the table is about {table.version}")
    assert kubectls_flags(KUBECTL) == dict(table.flags)
