"""One certificate of the node, with its key in a file: asked for when there is none, and again before it ends
(client-go util/certificate, certificate_manager.go)."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.host.clock import Clock
from ipc.host.private_directories import make_private
from ipc.host.text.safe_text import safe_line
from ipc.k8s.kubeconfig.client_tls import load_chain
from ipc.link.eventloop.backoff import Backoff
from workers.certificates.key_pair import KeyPairError, make_key_pair
from workers.certificates.signing_request import RequestRefused, signed
from workers.certificates.validity import MAX_BYTES, CertificateFormatError, Validity, read_validity
from workers.kubeclient.errors import ClusterError
from workers.kubeclient.protocol import Client

TRIES: Final = Backoff(2.0, 32.0)
"""Between two tries."""
LOOK_PERIOD_S: Final = 10.0
"""How often the clock and the names are looked at: a host that slept has not counted."""
SHORTEST_PERIOD_S: Final = 10.0
"""How long a new certificate is kept at least, in seconds, whatever the clocks of server and node say."""
_ENDS_AT: Final = "# ends at "

_log: Final = logging.getLogger(__name__)


class CertificateKind(msgspec.Struct, frozen=True):
    """Signer and purpose of a certificate."""

    signer: str
    usages: Sequence[str]
    words: str
    """For people: "client certificate"."""


class CertificateManager:
    """For one event loop."""

    def __init__(
        self,
        kind: CertificateKind,
        file: Path,
        user: str,
        clock: Clock,
        *,
        names: Callable[[], tuple[str, ...]] = tuple,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``user``: ``system:node:`` and the node's name. ``names``: those of a server, now; a certificate for others
        is replaced at once. ``chance``: numbers from 0 to 1."""
        self._kind = kind
        self._file = file
        self._user = user
        self._clock = clock
        self._names = names
        self._chance = chance

    def validity(self) -> Validity | None:
        """Validity of the certificate that is there; None without one that can be used."""
        try:
            return read_validity(read_bounded(self._file, MAX_BYTES))
        except (OSError, UntrustedFile, CertificateFormatError):
            return None

    async def obtain(self, client: Callable[[], Client]) -> None:
        """Ask until there is a new one. ``client``: who asks at that try, for an identity may end meanwhile."""
        failures = 0
        while True:
            try:
                return await self._once(client())
            except (ClusterError, RequestRefused, KeyPairError, OSError, ValueError) as error:
                _log.error("no new %s yet: %s", self._kind.words, safe_line(str(error)))
            failures += 1
            await asyncio.sleep(TRIES.pause_s(failures) * (1.0 + 0.1 * self._chance()))

    async def run(self, client: Callable[[], Client]) -> NoReturn:
        """Have one for ever. ``client``: who asks, now."""
        earliest = 0.0
        while True:
            validity, names = self.validity(), self._names()
            if validity is not None and self._made_for() == names:
                await self._until(max(validity.rotates_at(self._chance()), earliest), names)
            await self.obtain(client)
            earliest = self._clock.now().wall + SHORTEST_PERIOD_S

    async def _until(self, at: float, names: tuple[str, ...]) -> None:
        """Wait until that time, or until the names are others."""
        while True:
            left_s = at - self._clock.now().wall
            if left_s <= 0 or self._names() != names:
                return
            await asyncio.sleep(min(LOOK_PERIOD_S, left_s))

    def _made_for(self) -> tuple[str, ...]:
        """Names in the file's first line, in the words of `workers.api_server.access.own_certificate`."""
        first = read_bounded(self._file, MAX_BYTES).partition(b"\n")[0].decode(errors="replace")
        _, _, names = first.partition(" for ")
        return tuple(names.split(",")) if names else ()

    async def _once(self, client: Client) -> None:
        names = self._names()
        pair = await make_key_pair(self._user, names)
        certificate = await signed(client, pair.request_pem, self._kind.signer, self._kind.usages)
        try:
            ends_at = read_validity(certificate).ends_at
            load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, pair.key_pem)
        except CertificateFormatError as error:
            raise RequestRefused(f"what was signed: {error}") from None
        except ssl.SSLError:
            raise RequestRefused("the certificate that was signed is not of our key") from None
        head = f"{_ENDS_AT}{ends_at:.0f} for {','.join(names)}\n".encode()
        await asyncio.to_thread(self._write, head + certificate.strip() + b"\n" + pair.key_pem)
        _log.info("the cluster has signed a new %s: %s", self._kind.words, self._file)

    def _write(self, data: bytes) -> None:
        """With its key, readable for nobody else. Raises OSError."""
        make_private(self._file.parent)
        write_atomically(self._file, data)
