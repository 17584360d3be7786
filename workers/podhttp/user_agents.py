"""How probes and hooks introduce themselves: by upstream's names, with the version of the API spoken here."""

from __future__ import annotations

from typing import Final

_API_VERSION: Final = "1.36"
PROBE_USER_AGENT: Final = f"kube-probe/{_API_VERSION}"
"""By the beginning of which servers and proxies know probes."""
HOOK_USER_AGENT: Final = f"kube-lifecycle/{_API_VERSION}"
