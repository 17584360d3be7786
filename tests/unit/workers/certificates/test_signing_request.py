"""Bodies of certificate signing requests, and what became of one."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from workers.certificates.signing_request import (
    CLIENT_SIGNER,
    CLIENT_USAGES,
    RequestRefused,
    SigningRequest,
    request_body,
)


def decided(certificate: bytes | None = None, **conditions: str) -> SigningRequest:
    status: dict[str, Any] = {
        "conditions": [{"type": name, "status": value, "reason": "Why"} for name, value in conditions.items()]
    }
    if certificate is not None:
        status["certificate"] = base64.b64encode(certificate).decode()
    return msgspec.json.decode(json.dumps({"metadata": {"name": "csr-1"}, "status": status}), type=SigningRequest)


def test_a_body_as_the_kubelet_sends_it() -> None:
    assert json.loads(request_body(b"PEM", CLIENT_SIGNER, CLIENT_USAGES)) == {
        "kind": "CertificateSigningRequest",
        "apiVersion": "certificates.k8s.io/v1",
        "metadata": {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(b"PEM").decode(),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        },
        "status": {},
    }


@pytest.mark.parametrize(
    ("request_", "certificate"),
    [
        (decided(), b""),
        (decided(Approved="True"), b""),
        (decided(b"PEM"), b""),
        (decided(b"PEM", Approved="False"), b""),
        (decided(b"PEM", Approved="True"), b"PEM"),
        (decided(b"PEM", Approved="True", Denied="False"), b"PEM"),
    ],
)
def test_a_certificate_is_there_once_it_is_approved_and_signed(request_: SigningRequest, certificate: bytes) -> None:
    assert request_.certificate_pem == certificate


@pytest.mark.parametrize("condition", ["Denied", "Failed"])
def test_a_refusal_ends_the_wait(condition: str) -> None:
    with pytest.raises(RequestRefused, match=f"{condition}: Why"):
        _ = decided(b"PEM", Approved="True", **{condition: "True"}).certificate_pem
