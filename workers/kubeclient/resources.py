"""Resources of the API server that a node asks for, and their paths. Pure."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec


class Resource(msgspec.Struct, frozen=True):
    """A kind of object as the paths of the API name it."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path of the collection, an object, or its subresource. Of a namespaced resource without a namespace: all
        namespaces. Every part is quoted."""
        parts = ["/api", self.version] if not self.group else ["/apis", self.group, self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


PODS: Final = Resource("", "v1", "pods", True)
NODES: Final = Resource("", "v1", "nodes", False)
EVENTS: Final = Resource("", "v1", "events", True)
SERVICES: Final = Resource("", "v1", "services", True)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", True)
SECRETS: Final = Resource("", "v1", "secrets", True)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", True)
PERSISTENT_VOLUMES: Final = Resource("", "v1", "persistentvolumes", False)
PERSISTENT_VOLUME_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", True)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", True)
RUNTIME_CLASSES: Final = Resource("node.k8s.io", "v1", "runtimeclasses", False)
CSI_NODES: Final = Resource("storage.k8s.io", "v1", "csinodes", False)
CERTIFICATE_SIGNING_REQUESTS: Final = Resource("certificates.k8s.io", "v1", "certificatesigningrequests", False)
CLUSTER_TRUST_BUNDLES: Final = Resource("certificates.k8s.io", "v1beta1", "clustertrustbundles", False)
TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", False)
SUBJECT_ACCESS_REVIEWS: Final = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", False)
