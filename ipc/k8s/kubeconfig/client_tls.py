"""TLS of a client of the cluster, as its kubeconfig states it, and the files that it names."""

from __future__ import annotations

import os
import ssl
from typing import Final

from ipc.host.atomic_file import UntrustedFile
from ipc.host.regular_files import read_regular_file
from ipc.k8s.kubeconfig.exec_credential import PluginCredentials
from ipc.k8s.kubeconfig.types import ClusterAccess

MAX_FILE_BYTES: Final = 1 << 20
"""Largest token, key, certificate or bundle of authorities."""


def client_context(access: ClusterAccess, given: PluginCredentials | None = None) -> ssl.SSLContext:
    """TLS as the kubeconfig states it, with a plugin's certificate where it gave one. Authorities are the system's
    where it names none. Raises OSError, ValueError and UntrustedFile: a file is not there or is no such file.

    Not strict about what RFC 5280 wants of authorities, as Go is not: those of clusters often lack it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    if access.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif access.ca_pem or access.ca_file:
        pem = access.ca_pem or read_file(access.ca_file)
        context.load_verify_locations(cadata=pem.decode("ascii"))
    else:
        context.load_default_certs()
    credentials = access.credentials
    if given is not None and given.certificate_pem:
        load_chain(context, given.certificate_pem, given.key_pem)
    elif credentials.certificate_pem or credentials.certificate_file:
        load_chain(
            context,
            credentials.certificate_pem or read_file(credentials.certificate_file),
            credentials.key_pem or read_file(credentials.key_file),
        )
    return context


def read_file(path: str) -> bytes:
    """A file that a kubeconfig names; symbolic links are followed, as projected tokens and rotated certificates are
    links. Raises OSError and UntrustedFile."""
    data = read_regular_file(path, MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise UntrustedFile(f"{path}: is larger than {MAX_FILE_BYTES} bytes")
    return data


def load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Have a context show a certificate. OpenSSL reads files alone: this one is nowhere but in memory. Raises
    `ssl.SSLError`: one of both is none, or the key is another certificate's."""
    descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(key + b"\n" + certificate)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
