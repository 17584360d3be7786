"""CertificateSigningRequests: one is made, and its certificate waited for (client-go util/certificate/csr, csr.go)."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from ipc.link.eventloop.tasks import first_of
from workers.kubeclient.protocol import Client
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import CERTIFICATE_SIGNING_REQUESTS

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client-kubelet"
CLIENT_USAGES: Final = ("digital signature", "client auth")
SERVING_SIGNER: Final = "kubernetes.io/kubelet-serving"
SERVING_USAGES: Final = ("digital signature", "server auth")
WAIT_S: Final = 900.0
"""How long somebody may take to approve one request, in seconds (certificateWaitTimeout)."""
APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"


class RequestRefused(Exception):
    """The request was denied, has failed, or nobody has approved it in time; its text says which."""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str = "True"
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True):
    certificate: str | None = None
    conditions: tuple[_Condition, ...] | None = None


class SigningRequest(msgspec.Struct, frozen=True):
    """The fields of a CertificateSigningRequest that tell what became of it."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()

    @property
    def certificate_pem(self) -> bytes:
        """The certificate, once the request is approved and signed; until then empty. Raises RequestRefused."""
        conditions = {each.type: each for each in self.status.conditions or () if each.status != "False"}
        for type_ in (DENIED, FAILED):
            if type_ in conditions:
                one = conditions[type_]
                raise RequestRefused(f"certificate signing request is {type_}: {one.reason}: {one.message}"[:1024])
        if APPROVED not in conditions or not self.status.certificate:
            return b""
        try:
            return base64.b64decode(self.status.certificate, validate=True)
        except binascii.Error:
            raise RequestRefused("the certificate that was signed is no base64") from None


_DECODER: Final = msgspec.json.Decoder(SigningRequest)


def request_body(request_pem: bytes, signer: str, usages: Sequence[str]) -> bytes:
    """Body of the POST. ``key encipherment`` is for RSA keys alone."""
    return msgspec.json.encode(
        {
            "kind": "CertificateSigningRequest",
            "apiVersion": CERTIFICATE_SIGNING_REQUESTS.api_version,
            "metadata": {"generateName": "csr-"},
            "spec": {
                "request": base64.b64encode(request_pem).decode(),
                "signerName": signer,
                "usages": list(usages),
            },
            "status": {},
        }
    )


async def signed(client: Client, request_pem: bytes, signer: str, usages: Sequence[str]) -> bytes:
    """The certificate, PEM, once it is there. Raises RequestRefused, and ClusterError when it cannot be asked for."""
    body = request_body(request_pem, signer, usages)
    answer = await client.request("POST", CERTIFICATE_SIGNING_REQUESTS.path(), body=body)
    try:
        made = _DECODER.decode(answer)
    except UNDECODABLE:
        raise RequestRefused("the answer is no certificate signing request") from None
    decision = _Decision(made.metadata.uid)
    name = made.metadata.name
    reflector = Reflector(client, CERTIFICATE_SIGNING_REQUESTS, name=name, decode=_DECODER.decode, sink=decision)
    try:
        async with asyncio.timeout(WAIT_S):
            return await first_of(decision.certificate, reflector.run())
    except TimeoutError:
        raise RequestRefused(f"nobody has approved {name} within {WAIT_S:g} s") from None


class _Decision:
    """Sink of the reflector that follows one request."""

    def __init__(self, uid: str) -> None:
        self._uid = uid
        self.certificate: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def replaced(self, items: Sequence[SigningRequest]) -> None:
        """A request that is not there any more will not be approved."""
        if not any(item.metadata.uid == self._uid for item in items):
            self._end(RequestRefused("the certificate signing request is gone"))
        for item in items:
            self.changed(item)

    def changed(self, item: SigningRequest) -> None:
        """Look whether it is decided."""
        if item.metadata.uid != self._uid or self.certificate.done():
            return
        try:
            pem = item.certificate_pem
        except RequestRefused as error:
            self._end(error)
        else:
            if pem:
                self.certificate.set_result(pem)

    def deleted(self, item: SigningRequest) -> None:
        """Likewise gone."""
        if item.metadata.uid == self._uid:
            self._end(RequestRefused("the certificate signing request is gone"))

    def _end(self, error: RequestRefused) -> None:
        if not self.certificate.done():
            self.certificate.set_exception(error)
