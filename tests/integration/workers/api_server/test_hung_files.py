"""Files that the operator has named, on a file system that does not answer: what was read before stays, in a moment.

Each test's own deadline shows that the event loop goes on: it could not fire in a loop that is held up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ipc.host.clock import Instant, SystemClock
from ipc.k8s.kubeconfig.types import ClusterAccess, Credentials
from ipc.link.wire.server_settings import ServerSettings
from tests.support.hung_file_system import hung, is_there
from workers.api_server.access.certificates import Certificates, NoCertificate
from workers.api_server.access.filter import TokenFile
from workers.fs.fs_executor import TIMED_OUT, FsExecutor
from workers.kubeclient import credentials
from workers.kubeclient.credentials import CredentialsError, CredentialSource

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(not is_there(), reason="no fusermount3, or /dev/fuse is not for us"),
]
PATIENCE_S: Final = 20.0


@pytest.fixture
def files() -> Iterator[FsExecutor]:
    with contextlib.closing(FsExecutor()) as made:
        yield made


async def test_tokens_that_were_read_stay(tmp_path: Path, files: FsExecutor, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "tokens"
    file.write_text("secret,ann,1\n")
    file.chmod(0o600)
    tokens = TokenFile(str(file), files)
    before = await tokens.tokens()
    with hung(tmp_path):
        async with asyncio.timeout(PATIENCE_S):
            assert [await tokens.tokens() for _ in range(20)] == [before] * 20
        assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
            f"{file} cannot be read, the tokens before stay: {TIMED_OUT}"
        ]
    await files.run(str(file), int)  # behind the call that has hung
    file.write_text("secret,ann,1\nother,eve,2\n")
    assert await tokens.tokens() is not before


async def test_a_certificate_that_was_read_stays(tmp_path: Path, files: FsExecutor) -> None:
    certificates = Certificates(ServerSettings(pki_dir=str(tmp_path), addresses=("n1",)), EagerClock())
    first = await certificates.newest(files)
    with hung(tmp_path):
        async with asyncio.timeout(PATIENCE_S):
            assert [await certificates.newest(files) for _ in range(20)] == [first] * 20


async def test_without_a_certificate_nobody_is_served(tmp_path: Path, files: FsExecutor) -> None:
    certificates = Certificates(ServerSettings(pki_dir=str(tmp_path), addresses=("n1",)), EagerClock())
    with hung(tmp_path):
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(NoCertificate, match=TIMED_OUT):
                await certificates.newest(files)


async def test_a_token_for_the_cluster_that_was_read_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "CHECK_PERIOD_S", 0.0)
    file = tmp_path / "token"
    file.write_text("secret\n")
    access = ClusterAccess(server="http://127.0.0.1:1", credentials=Credentials(token_file=str(file)))
    source, late = CredentialSource(access, SystemClock()), CredentialSource(access, SystemClock())
    assert (await source.identity()).authorization == "Bearer secret"
    with hung(tmp_path):
        async with asyncio.timeout(PATIENCE_S):
            assert {(await source.identity()).authorization for _ in range(20)} == {"Bearer secret"}
            with pytest.raises(CredentialsError, match=TIMED_OUT):
                await late.identity()
    source.close()
    late.close()


class EagerClock(SystemClock):
    """So much passes between two looks that files are looked at each time."""

    def __init__(self) -> None:
        self._passed = 0.0

    def now(self) -> Instant:
        self._passed += 10.0
        now = super().now()
        return Instant(now.mono + self._passed, now.wall)
