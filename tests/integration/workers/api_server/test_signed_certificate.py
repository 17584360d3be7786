"""Certificate of the kubelet's port in a cluster: the one that the cluster has signed, while it holds, else our own."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from ipc.host.clock import Instant, wall
from ipc.k8s.kubeconfig.types import SERVING_CERTIFICATE
from ipc.link.wire.server_settings import ServerSettings
from tests.support.certificates import Authority
from workers.api_server.access.certificates import CHECK_PERIOD_S, Certificates

LIFE_S: Final = 600.0


class SteppedClock:
    """Goes on when it is told."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._began = wall()

    def now(self) -> Instant:
        return Instant(self.passed, self._began + self.passed)


def subject(context: ssl.SSLContext) -> str:
    """Common name of the certificate that the context shows, by a handshake in memory."""
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    asking, answering = client.wrap_bio(theirs, ours), context.wrap_bio(ours, theirs, server_side=True)
    for end in (asking, answering, asking, answering):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    shown = asking.getpeercert(binary_form=True)
    assert shown is not None
    return "signed" if b"signed.example" in shown else "own"


def test_what_the_cluster_has_signed_goes_before_our_own_while_it_holds(tmp_path: Path) -> None:
    clock = SteppedClock()
    pki = tmp_path / "pki"
    settings = ServerSettings(addresses=("n1",), pki_dir=str(pki), kubeconfig="/kubeconfig")
    certificates = Certificates(settings, clock)
    assert subject(certificates.context()) == "own"

    pem = Authority(tmp_path / "ca").server("signed.example").read_bytes()
    ends_at = clock.now().wall + LIFE_S
    (pki / SERVING_CERTIFICATE).write_bytes(f"# ends at {ends_at:.0f} for n1\n".encode() + pem)
    clock.passed += CHECK_PERIOD_S
    assert subject(certificates.context()) == "signed"

    clock.passed += LIFE_S
    assert subject(certificates.context()) == "own"


def test_without_a_cluster_nobody_looks_for_one(tmp_path: Path) -> None:
    clock = SteppedClock()
    pem = Authority(tmp_path / "ca").server("signed.example").read_bytes()
    (tmp_path / SERVING_CERTIFICATE).write_bytes(f"# ends at {clock.now().wall + LIFE_S:.0f} for n1\n".encode() + pem)
    certificates = Certificates(ServerSettings(addresses=("n1",), pki_dir=str(tmp_path)), clock)
    assert subject(certificates.context()) == "own"
