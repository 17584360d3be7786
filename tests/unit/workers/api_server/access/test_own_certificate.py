"""A certificate of our own: when it is made anew, and what a clock that goes on makes of it."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from ipc.host.clock import Instant, wall
from ipc.link.wire.server_settings import ServerSettings
from workers.api_server.access import certificates
from workers.api_server.access.certificates import Certificates, NoCertificate
from workers.api_server.access.own_certificate import (
    CERTIFICATE,
    RENEWED_BEFORE_S,
    VALID_S,
    is_due,
    make_certificate,
)

NAMES = ("node-1", "127.0.0.1", "::1")


class Clock:
    """Goes on by hand."""

    def __init__(self) -> None:
        self.wall = wall()
        self.mono = 0.0

    def now(self) -> Instant:
        self.mono += certificates.CHECK_PERIOD_S
        return Instant(mono=self.mono, wall=self.wall)


def test_when_one_is_made(tmp_path: Path) -> None:
    file, now = tmp_path / "pki" / CERTIFICATE, wall()
    assert is_due(file, NAMES, now)
    make_certificate(file, NAMES, now)
    assert not is_due(file, NAMES, now)
    assert not is_due(file, NAMES, now + VALID_S - RENEWED_BEFORE_S - 60)
    assert is_due(file, NAMES, now + VALID_S - RENEWED_BEFORE_S + 60), "soon it ends"
    assert is_due(file, (*NAMES, "192.0.2.1"), now), "it is for other names"
    assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("content", ["", "# ends at soon for node-1\n", "-----BEGIN CERTIFICATE-----\n", "\x00\xff"])
def test_what_is_no_certificate_of_ours_is_made_anew(tmp_path: Path, content: str) -> None:
    file = tmp_path / CERTIFICATE
    file.write_bytes(content.encode("latin-1"))
    assert is_due(file, NAMES, wall())


def test_it_is_renewed_while_the_server_runs(tmp_path: Path) -> None:
    clock = Clock()
    made = Certificates(ServerSettings(pki_dir=str(tmp_path), addresses=NAMES), clock)
    first = made.context()
    assert made.context() is first
    clock.wall += VALID_S - RENEWED_BEFORE_S + 60
    renewed = made.context()
    assert isinstance(renewed, ssl.SSLContext)
    assert renewed is not first
    assert made.context() is renewed


def test_where_none_can_be_made_nobody_is_served_until_there_is(tmp_path: Path) -> None:
    (tmp_path / "pki").touch()  # no directory
    made = Certificates(ServerSettings(pki_dir=str(tmp_path / "pki"), addresses=NAMES), Clock())
    with pytest.raises(NoCertificate):
        made.context()
    (tmp_path / "pki").unlink()
    assert isinstance(made.context(), ssl.SSLContext)


def test_a_client_authority_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    settings = ServerSettings(pki_dir=str(tmp_path), addresses=NAMES, client_ca_file=str(tmp_path / "none"))
    with pytest.raises(NoCertificate):
        Certificates(settings, Clock()).context()
