"""How probes introduce themselves."""

from __future__ import annotations

from typing import Final

PROBE_USER_AGENT: Final = "kube-probe/1.36"
"""Upstream's name, by whose beginning servers and proxies know probes, with the version of the API spoken here."""
