"""Settings and files that Podman 4 and 5 take and Podman 6 does not, or takes otherwise: told before the upgrade.

Podman 6 opens no BoltDB: every command fails until 5.8 has made a SQLite database of it (podman#27660). And
/etc/containers/storage.conf holds for every user without a file of their own.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.regular_files import read_regular_file
from supervisor.config.containers_conf import ADMINISTRATOR
from supervisor.doctor.findings import Finding, warning
from supervisor.doctor.podman_database import FILE

STORAGE_CONF: Final = "storage.conf"
MAX_BYTES: Final = 1 << 20
MIGRATED_FROM: Final = (5, 0)
"""First version of which it is told: older ones have a newer one before Podman 6."""


class UpgradeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of the user's storage about an upgrade to Podman 6."""

    has_boltdb: bool = False
    system_storage: tuple[str, ...] = ()
    """Settings of the administrator's storage.conf that would hold for this user: ``graphroot``, ``mount_program``."""


def upgrade_facts(graph_root: Path, environ: Mapping[str, str], system: Path = ADMINISTRATOR) -> UpgradeFacts:
    """Look at the files. Raises OSError for a directory that may not be read."""
    home = environ.get("HOME", "/")
    own = Path(environ.get("XDG_CONFIG_HOME") or Path(home) / ".config") / "containers" / STORAGE_CONF
    conf = _read(system / STORAGE_CONF) if not os.path.lexists(own) else {}
    storage = conf.get("storage")
    stated = storage if isinstance(storage, dict) else {}
    options = stated.get("options")
    tables = (options, options.get("overlay")) if isinstance(options, dict) else ()
    found = ["graphroot"] if stated.get("graphroot") else []
    found += ["mount_program"] if any(isinstance(each, dict) and each.get("mount_program") for each in tables) else []
    return UpgradeFacts(has_boltdb=os.path.lexists(graph_root / FILE), system_storage=tuple(found))


def upgrade_findings(version: tuple[int, ...], facts: UpgradeFacts) -> Iterator[Finding]:
    """Warnings of what will not go on with Podman 6; none once that is here, but for the files of the storage."""
    if facts.has_boltdb and MIGRATED_FROM <= version < (6,):
        what = "Podman's database is a BoltDB, which Podman 6 does not open"
        yield warning("upgrade", what, "with Podman 5.8 `podman system migrate --migrate-db`, or a reboot, before 6.0")
    if facts.system_storage and version < (6,):
        named = " and ".join(facts.system_storage)
        what = f"{ADMINISTRATOR / STORAGE_CONF} has {named}, which hold for this user from Podman 6 on"
        yield warning("upgrade", what, f"a ~/.config/containers/{STORAGE_CONF} of this user's, before 6.0")


def _read(file: Path) -> dict[str, object]:
    """Empty where there is none, or Podman has to complain of it."""
    try:
        return tomllib.loads(read_regular_file(file, MAX_BYTES).decode())
    except (OSError, ValueError):
        return {}
