"""Identity of this node in its cluster: the client that shows it, its bootstrap, and its rotation
(pkg/kubelet/certificate/bootstrap, bootstrap.go; pkg/kubelet/certificate, kubelet.go)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from ipc.host.atomic_file import UntrustedFile, write_atomically
from ipc.host.clock import Clock
from ipc.host.log.last_words import LastWords
from ipc.host.private_directories import make_private
from ipc.k8s.kubeconfig.client_tls import read_file
from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from ipc.k8s.kubeconfig.encode import encode_node_kubeconfig
from ipc.k8s.kubeconfig.types import CLIENT_CERTIFICATE, SERVING_CERTIFICATE, ClusterAccess, KubeconfigError
from ipc.link.eventloop.tasks import first_of
from ipc.link.wire.cluster_settings import ClusterSettings
from workers.certificates.manager import CertificateKind, CertificateManager
from workers.certificates.signing_request import CLIENT_SIGNER, CLIENT_USAGES, SERVING_SIGNER, SERVING_USAGES
from workers.certificates.validity import CertificateFormatError, read_validity
from workers.kubeclient.client import ApiClient, Observer
from workers.kubeclient.rate_limit import RateLimit

USER_PREFIX: Final = "system:node:"
RETRY_S: Final = 5.0
"""After so long kubeconfigs that could not be used are read again, in seconds."""
_CLIENT: Final = CertificateKind(CLIENT_SIGNER, CLIENT_USAGES, "client certificate")
_SERVING: Final = CertificateKind(SERVING_SIGNER, SERVING_USAGES, "serving certificate")

_log: Final = logging.getLogger(__name__)


class NodeIdentity:
    """For one event loop."""

    def __init__(
        self,
        settings: ClusterSettings,
        node_name: str,
        clock: Clock,
        *,
        user_agent: str,
        limit: RateLimit,
        observer: Observer | None = None,
    ) -> None:
        """Reads nothing yet. ``limit`` is that of the node's client."""
        self._settings = settings
        self._user = f"{USER_PREFIX}{node_name}"
        self._clock = clock
        self._user_agent = user_agent
        self._limit = limit
        self._observer = observer
        self._file = Path(settings.pki_dir) / CLIENT_CERTIFICATE
        self._manager = CertificateManager(_CLIENT, self._file, self._user, clock)

    async def client(self) -> ApiClient:
        """The node's client. Waits, for as long as it takes, for a kubeconfig that can be used, and for the certificate
        where it has to be asked for with a bootstrap token."""
        failures = LastWords()
        while True:
            try:
                if not self._needs_bootstrap():
                    return self._client_of(self._access())
                await self._bootstrap()
                return self._client_of(self._access())
            except (KubeconfigError, OSError, UntrustedFile) as error:
                if failures.are_new(str(error)):
                    _log.error("there is no way into the cluster yet: %s", error)
            await asyncio.sleep(RETRY_S)

    async def run(self, client: ApiClient, names: Callable[[], tuple[str, ...]]) -> NoReturn:
        """Ask for the next certificates before those that are there end: the client's with rotateCertificates, the
        server's with serverTLSBootstrap. ``names``: the node's host name and addresses, now."""
        await first_of(self._rotate_client(client), self._keep_serving(client, names))
        raise AssertionError("both go on for ever")

    # --------------------------------------------------------------------------------------------------------------

    async def _rotate_client(self, client: ApiClient) -> NoReturn:
        bootstrap: list[ApiClient] = []

        def asker() -> ApiClient:
            """One whose certificate has ended asks with the token again, as a kubelet does that is started anew."""
            validity = self._manager.validity()
            if not self._settings.bootstrap_kubeconfig or (
                validity is not None and not validity.is_over(self._clock.now().wall)
            ):
                return client
            with contextlib.suppress(KubeconfigError, OSError, UntrustedFile):
                access = self._bootstrap_access()
                for before in bootstrap:
                    before.close()
                bootstrap[:] = [self._client_of(access)]
            return bootstrap[0] if bootstrap else client

        if self._settings.rotate_certificates and self._is_ours(self._access()):
            await self._manager.run(asker)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def _keep_serving(self, client: ApiClient, names: Callable[[], tuple[str, ...]]) -> NoReturn:
        file = Path(self._settings.pki_dir) / SERVING_CERTIFICATE
        if not self._settings.server_tls_bootstrap:
            file.unlink(missing_ok=True)
            await asyncio.Event().wait()
        await CertificateManager(_SERVING, file, self._user, self._clock, names=names).run(lambda: client)

    def _needs_bootstrap(self) -> bool:
        """Whether there is no kubeconfig whose certificate still holds (isClientConfigStillValid). Raises
        KubeconfigError, OSError and UntrustedFile when it cannot be used and there is no bootstrap either."""
        if not self._settings.bootstrap_kubeconfig:
            return False
        try:
            credentials = self._access().credentials
            pem = credentials.certificate_pem
            if not pem and not credentials.certificate_file:
                return False
            return read_validity(pem or read_file(credentials.certificate_file)).is_over(self._clock.now().wall)
        except (KubeconfigError, OSError, UntrustedFile, CertificateFormatError) as error:
            _log.info("the node asks for its identity with its bootstrap token: %s", error)
            return True

    async def _bootstrap(self) -> None:
        access = self._bootstrap_access()
        client = self._client_of(access)
        try:
            await self._manager.obtain(lambda: client)
        finally:
            client.close()
        path = Path(self._settings.kubeconfig)
        await asyncio.to_thread(_write, path, encode_node_kubeconfig(access, str(self._file)))

    def _access(self) -> ClusterAccess:
        return _read(self._settings.kubeconfig)

    def _bootstrap_access(self) -> ClusterAccess:
        return _read(self._settings.bootstrap_kubeconfig)

    def _is_ours(self, access: ClusterAccess) -> bool:
        """Whether the kubeconfig shows the certificate that is rotated. One of somebody else's is theirs to rotate."""
        shown = access.credentials.certificate_file
        return bool(shown) and os.path.realpath(shown) == os.path.realpath(self._file)

    def _client_of(self, access: ClusterAccess) -> ApiClient:
        return ApiClient(access, self._clock, user_agent=self._user_agent, limit=self._limit, observer=self._observer)


def _read(path: str) -> ClusterAccess:
    try:
        return decode_kubeconfig(read_file(path), os.path.dirname(path))
    except KubeconfigError as error:
        raise KubeconfigError(f"{path}: {error}") from None


def _write(path: Path, data: bytes) -> None:
    make_private(path.parent)
    write_atomically(path, data)
