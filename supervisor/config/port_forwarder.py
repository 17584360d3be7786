"""The program that carries connections to a host port into a pod on a bridge (`podman.portForwarder`).

Podman's rootlessport connects anew from inside the pod's network, so that a server sees an address of its own network
instead of the client's. From 6.0 on pasta can take its place, which is told by its program ``pesto`` what to forward
(containers.conf(5), rootless_port_forwarder; container-libs, common/libnetwork/pasta/pesto_linux.go).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any, Final

from ipc.k8s.network.network_programs import HELPER_DIRS, PASTA

KEY: Final = "rootless_port_forwarder"
"""Name in the table ``network`` of containers.conf."""
PESTO: Final = "pesto"
"""The program of passt by which Podman tells pasta what to forward; passt has it since May 2026."""
OLDEST_BY_PASTA: Final = (6, 1)
"""First version of Podman that is trusted with it: 6.0 left the forwards of ended containers (podman#29032)."""


def forwarder_problem(forwarder: str, version: tuple[int, ...], pesto: str) -> str:
    """Why Podman of that version cannot forward so; empty when it can, or where its version is not known.

    ``pesto``: path of that program, empty where there is none. Pure.
    """
    if forwarder != PASTA:
        return ""
    if version and version < OLDEST_BY_PASTA:
        return f"{PASTA} needs Podman 6.1 or newer, and this is {'.'.join(map(str, version))}"
    if not pesto:
        return f"{PASTA} needs the program {PESTO}, and Podman finds none: install passt of May 2026 or newer"
    return ""


def find_pesto(conf: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Path of that program where Podman looks for it (container-libs, pkg/config, FindHelperBinary); empty when it is
    nowhere. ``conf``: Podman's settings, by table."""
    stated = conf.get("engine", {}).get("helper_binaries_dir")
    places = [str(place) for place in stated] if isinstance(stated, list) else HELPER_DIRS
    return shutil.which(PESTO, path=os.pathsep.join((*places, environ.get("PATH", os.defpath)))) or ""


def forwarder_table(forwarder: str) -> dict[str, dict[str, str]]:
    """Tables of containers.conf with that forwarder; none where it is empty, which leaves the user's, or Podman's."""
    return {"network": {KEY: forwarder}} if forwarder else {}
