"""Certificate signing requests: what the server fills in, who approves them, and the signer
(pkg/controller/certificates/approver, signer)."""

from __future__ import annotations

import base64
import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.support.servers.kube_api.authority import DAY, Authority, b64
from tests.support.servers.kube_api.failures import Cause, JsonObject, forbidden, invalid, required
from tests.support.servers.kube_api.requests import User
from tests.support.servers.kube_api.store import Store

GROUP: Final = "certificates.k8s.io"
CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING: Final = "kubernetes.io/kubelet-serving"
_USAGES: Final = {
    CLIENT: ({"digital signature", "client auth"}, {"key encipherment"}),
    SERVING: ({"digital signature", "server auth"}, {"key encipherment"}),
}
"""Usages that a request must have, and that it may have."""


@dataclass
class Signing:
    """Approver and signer of the cluster."""

    store: Store
    authority: Authority
    approves: set[str] = field(default_factory=lambda: {CLIENT})
    """Signers whose requests are approved at once; as in a cluster, serving certificates wait for somebody."""
    lifetime: timedelta = DAY
    """Lifetime of the next certificate."""
    begins_now: bool = False
    """A certificate begins when it is signed, and not some minutes before."""

    def created(self, request: JsonObject, user: User) -> JsonObject:
        """Stores a new request. Raises Refusal."""
        _check(request)
        spec = copy.deepcopy(request["spec"])
        spec |= {"username": user.name, "groups": list(user.groups)} | ({"uid": user.uid} if user.uid else {})
        if user.node:
            self._check_node(request, user.node)
        return self.store.create(request | {"spec": spec, "status": {}})

    def settle(self, name: str) -> None:
        """Act on a new request as the controllers do."""
        if self.store.get("certificatesigningrequests", "", name)["spec"]["signerName"] in self.approves:
            self.approve(name)

    def approve(self, name: str) -> None:
        """Approves and signs. Raises Refusal (404)."""
        self._decide(
            name, "Approved", "AutoApproved", "Auto approving kubelet client certificate after SubjectAccessReview."
        )
        self.sign(name)

    def deny(self, name: str, message: str = "denied by a test") -> None:
        """Raises Refusal (404)."""
        self._decide(name, "Denied", "Denied", message)

    def fail(self, name: str, message: str = "failed by a test") -> None:
        """The signer's own refusal. Raises Refusal (404)."""
        self._decide(name, "Failed", "SignerValidationFailure", message)

    def sign(self, name: str) -> None:
        """Fills in the certificate of an approved request."""
        found = self.store.get("certificatesigningrequests", "", name)
        request = x509.load_pem_x509_csr(base64.b64decode(found["spec"]["request"]))
        lifetime = min(self.lifetime, timedelta(seconds=found["spec"].get("expirationSeconds", 1 << 30)))
        begins = datetime.now(UTC) if self.begins_now else None
        is_server = found["spec"]["signerName"] == SERVING
        signed = self.authority.sign(request, server=is_server, lifetime=lifetime, begins=begins)
        found["status"]["certificate"] = b64(signed)
        self.store.update(found)

    def _decide(self, name: str, type_: str, reason: str, message: str) -> None:
        found = self.store.get("certificatesigningrequests", "", name)
        now = self.store.now()
        condition = {"type": type_, "status": "True", "reason": reason, "message": message}
        condition |= {"lastUpdateTime": now, "lastTransitionTime": now}
        found.setdefault("status", {}).setdefault("conditions", []).append(condition)
        self.store.update(found)

    def _check_node(self, request: JsonObject, node: str) -> None:
        """A node asks for certificates of its own name alone (admission noderestriction, admitCSR)."""
        if request["spec"]["signerName"] not in _USAGES:
            return
        subject = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"])).subject
        names = [str(part.value) for part in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        if names != [f"system:node:{node}"]:
            said = f'can only create a node CSR with CN=system:node:{node}, not "{"".join(names)}"'
            raise forbidden("certificatesigningrequests", request["metadata"].get("name", ""), said, GROUP)


def _check(request: JsonObject) -> None:
    """pkg/apis/certificates/validation, and the signers' rules for names and usages. Raises Refusal."""
    spec, name = request.get("spec") or {}, request["metadata"].get("name", "")
    causes: list[Cause] = []
    try:
        csr = x509.load_pem_x509_csr(base64.b64decode(spec.get("request", ""), validate=True))
    except ValueError as error:
        causes.append(Cause("spec.request", f'Invalid value: "": {error}'))
    else:
        causes += _signer_causes(csr, spec)
    if not spec.get("usages"):
        causes.append(required("spec.usages"))
    if not spec.get("signerName"):
        causes.append(required("spec.signerName"))
    if causes:
        raise invalid("CertificateSigningRequest", name, causes, GROUP)


def _signer_causes(csr: x509.CertificateSigningRequest, spec: JsonObject) -> list[Cause]:
    """pkg/apis/certificates/helpers.go. A real signer ends such requests with a Failed condition; a test wants to
    see them at once."""
    signer = spec.get("signerName")
    if signer not in _USAGES:
        return []
    organizations = [part.value for part in csr.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    needed, more = _USAGES[signer]
    causes = []
    if organizations != ["system:nodes"]:
        causes.append(Cause("spec.request", "subject organization is not system:nodes"))
    if not needed <= set(spec.get("usages") or ()) <= needed | more:
        causes.append(Cause("spec.usages", f"usages did not match {sorted(needed)}"))
    names = [one for one in csr.extensions if isinstance(one.value, x509.SubjectAlternativeName)]
    if bool(names) != (signer == SERVING):
        causes.append(
            Cause(
                "spec.request",
                "DNS or IP subjectAltName is required" if signer == SERVING else "subjectAltNames are not allowed",
            )
        )
    return causes
