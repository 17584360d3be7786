"""Names of a pod, in its kernel and in its hosts file. Pure.

Mirrors GeneratePodHostNameAndDomain and truncatePodHostnameIfNeeded (pkg/kubelet/kubelet_pods.go) and
GetNodenameForKernel (pkg/kubelet/util/util.go).
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.gofmt import quoted
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.validation.names import DNS_LABEL, DNS_SUBDOMAIN, NameRule

MAX_HOSTNAME_CHARS: Final = 63
"""pkg/kubelet/kubelet_pods.go, truncatePodHostnameIfNeeded."""
MAX_FQDN_CHARS: Final = 64
"""Longest nodename of the kernel (pkg/kubelet/util/util.go, GetNodenameForKernel)."""

_RFC_1123_LABEL: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_RFC_1123_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


class HostnameError(ValueError):
    """The pod cannot be called that; the text is the kubelet's."""


class PodNames(msgspec.Struct, frozen=True):
    """A host name and the domain that it is in; an empty domain means none."""

    hostname: str
    domain: str = ""

    @property
    def fqdn(self) -> str:
        return f"{self.hostname}.{self.domain}" if self.domain else self.hostname


def pod_names(pod: Pod, cluster_domain: str) -> PodNames:
    """Raises HostnameError, for what `validate_pod` has refused already.

    Different on purpose: without a cluster domain the pod's domain ends in ``svc`` and not in a dot.
    """
    spec = pod.spec
    if spec.hostname_override is not None:
        _check("HostnameOverride", spec.hostname_override, DNS_SUBDOMAIN, "DNS subdomain", _RFC_1123_SUBDOMAIN)
        return PodNames(truncate_hostname(spec.hostname_override))
    _check("Hostname", spec.hostname, DNS_LABEL, "DNS label", _RFC_1123_LABEL)
    hostname = truncate_hostname(spec.hostname or pod.metadata.name)
    _check("Subdomain", spec.subdomain, DNS_LABEL, "DNS label", _RFC_1123_LABEL)
    if not spec.subdomain:
        return PodNames(hostname)
    parts = (spec.subdomain, pod.metadata.namespace, "svc", cluster_domain)
    return PodNames(hostname, ".".join(part for part in parts if part))


def kernel_hostname(pod: Pod, cluster_domain: str) -> str:
    """Output of ``hostname`` in the pod. Raises HostnameError, for a name that the kernel cannot hold too."""
    return nodename_for_kernel(pod_names(pod, cluster_domain), as_fqdn=bool(pod.spec.set_hostname_as_fqdn))


def nodename_for_kernel(names: PodNames, *, as_fqdn: bool) -> str:
    """GetNodenameForKernel. Raises HostnameError for a full name that the kernel cannot hold."""
    if not (as_fqdn and names.domain):
        return names.hostname
    if len(names.fqdn) > MAX_FQDN_CHARS:
        raise HostnameError(
            f"failed to construct FQDN from pod hostname and cluster domain, FQDN {names.fqdn} is too long "
            f"({MAX_FQDN_CHARS} characters is the max, {len(names.fqdn)} characters requested)"
        )
    return names.fqdn


def truncate_hostname(name: str) -> str:
    """Cut a name to MAX_HOSTNAME_CHARS, so that it ends neither in a hyphen nor in a dot."""
    return name if len(name) <= MAX_HOSTNAME_CHARS else name[:MAX_HOSTNAME_CHARS].rstrip("-.")


def _check(field: str, value: str, rule: NameRule, what: str, advice: str) -> None:
    """An empty one is not set."""
    if not value or rule.problem(value) is None:
        return
    too_long = len(value) > rule.max_chars
    why = f"must be no more than {rule.max_chars} characters" if too_long else advice
    raise HostnameError(f"pod {field} {quoted(value)} is not a valid {what}: {why}")
