"""ConfigMaps and Secrets. No finding repeats a value of either.

Source: pkg/apis/core/validation ValidateConfigMap, ValidateConfigMapUpdate, ValidateSecret, ValidateSecretUpdate.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.api.errors import FieldError, forbidden, invalid, required, shown_key, too_long
from ipc.k8s.api.v1.base import json_name
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.validation.checks import Errors, first_errors
from ipc.k8s.api.validation.metadata import validate_metadata
from ipc.k8s.api.validation.names import CONFIG_KEY

MAX_OBJECT_BYTES: Final = 1 << 20
"""Largest sum of all values of one object, in bytes (core/v1 MaxSecretSize)."""
SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_IMMUTABLE: Final = "field is immutable when `immutable` is set"


def validate_config_map(config_map: ConfigMap) -> tuple[FieldError, ...]:
    """Faults for which Kubernetes would refuse a ConfigMap; () when it is valid. At most MAX_FIELD_ERRORS findings."""
    return first_errors(
        validate_metadata(config_map.metadata, "metadata"),
        _keys(config_map.data, "data"),
        _in_both(config_map),
        _keys(config_map.binary_data, "binaryData"),
        _size("", (*_encoded(config_map), *config_map.binary_data.values())),
    )


def validate_secret(secret: Secret) -> tuple[FieldError, ...]:
    """Faults for which Kubernetes would refuse a Secret, among them the keys that its type asks for."""
    type_check = _BY_TYPE.get(secret.type)
    return first_errors(
        validate_metadata(secret.metadata, "metadata"),
        _keys(secret.data, "data"),
        _size("data", secret.data.values()),
        type_check(secret) if type_check else (),
    )


def validate_config_map_update(new: ConfigMap, old: ConfigMap) -> tuple[FieldError, ...]:
    """Changes from ``old`` to ``new`` that Kubernetes would refuse: those of an immutable ConfigMap."""
    return first_errors(_changed(new, old, ("data", "binary_data"))) if old.immutable else ()


def validate_secret_update(new: Secret, old: Secret) -> tuple[FieldError, ...]:
    """Changes from ``old`` to ``new`` that Kubernetes would refuse; the type of a Secret never changes."""
    type_errors = (invalid("type", new.type, "field is immutable"),) if new.type != old.type else ()
    return first_errors(_changed(new, old, ("data",)) if old.immutable else (), type_errors)


def _keys(data: Mapping[str, object], path: str) -> Errors:
    for key in data:
        if problem := CONFIG_KEY.problem(key):
            yield invalid(f"{path}[{shown_key(key)}]", key, problem)


def _in_both(config_map: ConfigMap) -> Errors:
    for key in config_map.data:
        if key in config_map.binary_data:
            yield invalid(f"data[{shown_key(key)}]", key, "duplicate of key present in binaryData")


def _encoded(config_map: ConfigMap) -> Iterable[bytes]:
    return (value.encode() for value in config_map.data.values())


def _size(path: str, values: Iterable[bytes]) -> Errors:
    """Check the size of the values; keys do not count."""
    if sum(map(len, values)) > MAX_OBJECT_BYTES:
        yield too_long(path, MAX_OBJECT_BYTES)


def _changed(new: ConfigMap | Secret, old: ConfigMap | Secret, attributes: Iterable[str]) -> Errors:
    if not new.immutable:
        yield forbidden("immutable", _IMMUTABLE)
    for attribute in attributes:
        if getattr(new, attribute) != getattr(old, attribute):
            yield forbidden(json_name(attribute), _IMMUTABLE)


# --- types of Secrets -------------------------------------------------------------------------------------------------


def _needs_all(*keys: str) -> Callable[[Secret], Errors]:
    def check(secret: Secret) -> Errors:
        for key in keys:
            if key not in secret.data:
                yield required(f"data[{key}]")

    return check


def _needs_json(key: str) -> Callable[[Secret], Errors]:
    """The key must be there and hold a JSON object. What is wrong with it is not said: that could repeat it."""

    def check(secret: Secret) -> Errors:
        yield from _needs_all(key)(secret)
        if key in secret.data and not _is_json_object(secret.data[key]):
            yield invalid(f"data[{key}]", "<secret contents redacted>", "must be a JSON object")

    return check


def _is_json_object(data: bytes) -> bool:
    """As Go's json.Unmarshal into a map: ``null`` is one too, and NaN is no JSON."""
    try:
        return isinstance(msgspec.json.decode(data), dict | type(None))
    except UNDECODABLE:
        return False


def _needs_user_or_password(secret: Secret) -> Errors:
    if not secret.data.keys() & {"username", "password"}:
        yield from _needs_all("username", "password")(secret)


def _needs_ssh_key(secret: Secret) -> Errors:
    if not secret.data.get("ssh-privatekey"):
        yield required("data[ssh-privatekey]")


def _needs_service_account(secret: Secret) -> Errors:
    if not secret.metadata.annotations.get(SERVICE_ACCOUNT_NAME):
        yield required(f"metadata.annotations[{SERVICE_ACCOUNT_NAME}]")


_BY_TYPE: Final[Mapping[str, Callable[[Secret], Errors]]] = {
    "kubernetes.io/service-account-token": _needs_service_account,
    "kubernetes.io/dockercfg": _needs_json(".dockercfg"),
    "kubernetes.io/dockerconfigjson": _needs_json(".dockerconfigjson"),
    "kubernetes.io/basic-auth": _needs_user_or_password,
    "kubernetes.io/ssh-auth": _needs_ssh_key,
    "kubernetes.io/tls": _needs_all("tls.crt", "tls.key"),
}
"""Check of each known type's data; any other type is as good as Opaque."""
