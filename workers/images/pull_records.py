"""Pull records: by which logins an image was pulled, so that only pods with such a login use it without a pull.

Mirrors the image pull manager (pkg/kubelet/images/pullmanager) with its default policy, NeverVerifyPreloadedImages: an
image without a record, pulled by another client or with the logins of the agent's user, is for all pods. One file per
image below ``<stateDir>/pulled-images``, with fingerprints of logins, never with logins. A pod without one that is
good has to pull, which asks the registry. A pull that has begun and not ended leaves its intent in ``pulling``, as
upstream's does: the image is for pods with that login alone. Records of removed images are removed, some with each
pull, and all with each round of image garbage collection (PruneUnknownRecords).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.host.private_directories import make_private
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.podobjects.registry_login import PullOwner

MAX_FINGERPRINTS: Final = 1_000
"""Most logins recorded of one image: the newest."""
MAX_RECORD_BYTES: Final = 1 << 20
"""Largest record that is read; one of the most fingerprints has a tenth of it."""
TIMESTAMP_SLACK_S: Final = 1.0
"""File systems are behind the clock by a tick."""
INTENTS: Final = "pulling"
_IMAGE_ID: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


class _Record(msgspec.Struct, frozen=True):
    fingerprints: tuple[str, ...] = ()


class PullRecords:
    """Reads and writes the records. One that cannot be read allows no pod: the next pull writes it anew."""

    def __init__(self, directory: str) -> None:
        """With an empty ``directory`` nothing is recorded, and every pod may use every image."""
        self._directory = directory

    def allows(self, reference: str, image_id: str, owners: Iterable[PullOwner]) -> bool:
        """Whether a pod with these logins, or of that account, may use that image without asking its registry."""
        if not self._has_any():
            return True
        mine = {owner.fingerprint() for owner in owners}
        record = self._read(image_id)
        if record is not None:
            return not mine.isdisjoint(record.fingerprints)
        intents = self._intents(reference)
        return not intents or not mine.isdisjoint(intents)

    def intend(self, reference: str, owner: PullOwner | None) -> None:
        """Record that a pull begins for whoever has that login, or is that account: the process may die between its end
        and `grant`. Raises OSError."""
        if owner is not None and self._directory:
            intent = self._intent(reference, owner)
            make_private(intent.parent)
            intent.touch()

    def withdraw(self, reference: str, owner: PullOwner | None) -> None:
        """Remove the intent of a pull that has failed. Raises OSError."""
        if owner is not None and self._directory:
            self._intent(reference, owner).unlink(missing_ok=True)

    def grant(self, reference: str, image_id: str, owner: PullOwner | None) -> None:
        """Record whose the image is that was pulled; without an owner it is for all pods. Raises OSError."""
        file = self._file(image_id)
        if file is None:
            return
        if owner is None:
            file.unlink(missing_ok=True)
            for intent in self._intents(reference).values():
                intent.unlink(missing_ok=True)
            return
        known = self._read(image_id) or _Record()
        mine = owner.fingerprint()
        kept = (*(other for other in known.fingerprints if other != mine), mine)[-MAX_FINGERPRINTS:]
        make_private(file.parent)
        write_atomically(file, msgspec.json.encode(_Record(kept)), durable=False)
        self.withdraw(reference, owner)

    def oldest(self, number: int) -> dict[str, int]:
        """Images whose records were written or `seen` longest ago, with that time in the file system's nanoseconds."""
        records = [(file.stat().st_mtime_ns, file.name) for file in self._records()]
        return {image_id: at for at, image_id in sorted(records)[:number]}

    def prune(self, images: Collection[str], listed_at: float) -> None:
        """Remove records of images other than these (ids), but for those written since they were listed, in wall time
        (PruneUnknownRecords). Raises OSError."""
        for file in self._records():
            if file.name not in images and file.stat().st_mtime < listed_at - TIMESTAMP_SLACK_S:
                file.unlink(missing_ok=True)

    def remove(self, image_id: str) -> None:
        """Remove the record of an image that was removed. Raises OSError."""
        file = self._file(image_id)
        if file is not None:
            file.unlink(missing_ok=True)

    def seen(self, image_id: str) -> None:
        """Renew the record's time: the image is there. Raises OSError."""
        file = self._file(image_id)
        if file is not None:
            os.utime(file)

    def forget(self, image_id: str, at: int) -> None:
        """Remove the record of an image that is gone, unless it was written after ``at``, as `oldest` has given it.
        Raises OSError."""
        file = self._file(image_id)
        if file is not None and file.stat().st_mtime_ns == at:
            file.unlink()

    def _has_any(self) -> bool:
        """Whether there may be a record: on most hosts nobody has pulled with a login."""
        try:
            os.stat(self._directory)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def _records(self) -> list[Path]:
        try:
            found = list(Path(self._directory).iterdir()) if self._directory else []
        except FileNotFoundError:
            return []
        return [file for file in found if _IMAGE_ID.fullmatch(file.name)]

    def _intents(self, reference: str) -> dict[str, Path]:
        """Files of pulls of that name that have begun, by the fingerprints of their logins."""
        directory = self._intended(reference)
        try:
            return {entry.name: entry for entry in directory.iterdir()} if self._directory else {}
        except FileNotFoundError:
            return {}

    def _intent(self, reference: str, owner: PullOwner) -> Path:
        return self._intended(reference) / owner.fingerprint()

    def _intended(self, reference: str) -> Path:
        return Path(self._directory) / INTENTS / hashlib.sha256(reference.encode()).hexdigest()

    def _read(self, image_id: str) -> _Record | None:
        file = self._file(image_id)
        if file is None:
            return None
        try:
            return msgspec.json.decode(read_bounded(file, MAX_RECORD_BYTES), type=_Record)
        except FileNotFoundError:
            return None
        except (OSError, UntrustedFile, *UNDECODABLE):
            return _Record()  # it stays: without one the image would be nobody's, and everybody's

    def _file(self, image_id: str) -> Path | None:
        found = _IMAGE_ID.fullmatch(image_id)
        return Path(self._directory) / found[1] if self._directory and found else None
