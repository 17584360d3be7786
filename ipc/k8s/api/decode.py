"""From parsed YAML or JSON to a Pod or another object, and back. Every finding is reported, each with its path."""

import binascii
import contextlib
import functools
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from ipc.k8s.api.errors import FieldError, FieldErrors, is_type_word, not_supported, required, shown_key
from ipc.k8s.api.schema import Kind, Shape, literal_values, max_length, shape_of, struct_fields
from ipc.k8s.api.v1.base import Int64
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass

MAX_FIELD_ERRORS: Final = 50
"""Most findings reported for one object; a manifest can be wrong a hundred thousand times."""
MAX_VALUES: Final = 100_000
"""Most values in one object. YAML aliases make a small file arbitrarily large; a real pod has some hundred values."""
MAX_FREE_FORM_DEPTH: Final = 32
"""Deepest nesting, in levels, where the API allows any JSON (`fieldsV1`)."""

_INT_BITS: Final = 64
_KEY_TYPES: Final = frozenset({str})

_JSON_TYPE_NAMES: Final[Mapping[str, str]] = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "NoneType": "null",
    "date": "date (quote it)",
    "datetime": "timestamp (quote it)",
}

_SAMPLES: Final[Mapping[str, object]] = {"string": "", "integer": 0, "number": 0.5, "boolean": True}
"""One value of each JSON scalar type: what a field accepts is found by trying."""

NO_UNICODE: Final = "is not valid Unicode text"
MEANT: Final = ", did you mean "
"""Between the words for an unknown field and the name of one that is like it."""
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_LINE_BREAKS: Final = str.maketrans("", "", "\r\n")

_S = TypeVar("_S", bound=msgspec.Struct)


def decode_pod(obj: object) -> Pod:
    """Make a Pod of parsed YAML or JSON data.

    `null` means absent, as in Go. `status` is accepted and ignored. Nothing is defaulted or validated here: see
    `default_pod` and `validate_pod`. Raises FieldErrors for a wrong apiVersion or kind, unknown or missing fields and
    wrong types; at most MAX_FIELD_ERRORS of them.
    """
    return _decode(obj, Pod, ignored=("status",))


def decode_server_pod(obj: object) -> Pod:
    """Make a Pod of what an API server has sent, its status too. A field that is not known here is dropped: the server
    may be newer than this node. Raises FieldErrors as `decode_pod` does, for all else."""
    return _decode(obj, Pod, drops_unknown=True)


def decode_server_object(data: bytes, struct: type[_S]) -> _S:
    """Make an object of the JSON that an API server has sent for it, as `decode_server_pod` does: also of a list's
    item, which says neither apiVersion nor kind. `managedFields` are left out. Raises ValueError, which repeats no
    value of a Secret."""
    value = msgspec.json.decode(data)
    if not isinstance(value, dict):
        raise ValueError("no object")
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    try:
        return _converted(value, struct, drops_unknown=True)
    except FieldErrors as error:
        raise ValueError(str(error)) from error


def decode_rest_of_pod(obj: object) -> Pod | None:
    """Pod of those fields of a wrong one that are known and of their types, so that more can be said of it at once;
    None when something in it is worse than an unknown or a missing field."""
    if not isinstance(obj, Mapping):
        return None
    value = _Walk().run({key: item for key, item in obj.items() if key != "status"}, Pod)
    try:
        return msgspec.convert(value, Pod)
    except msgspec.ValidationError:
        return None


def decode_config_map(obj: object) -> ConfigMap:
    """Make a ConfigMap of parsed YAML or JSON data, as `decode_pod` does."""
    return _decode(obj, ConfigMap)


def decode_secret(obj: object) -> Secret:
    """Make a Secret of parsed YAML or JSON data, as `decode_pod` does; no finding repeats a value.

    ``stringData`` goes into ``data``, where it counts more (Convert_v1_Secret_To_core_Secret,
    pkg/apis/core/v1/conversion.go).
    """
    secret = _decode(obj, Secret)
    written = {key: text.encode() for key, text in secret.string_data.items()}
    return msgspec.structs.replace(secret, data={**secret.data, **written}, string_data={})


def decode_priority_class(obj: object) -> PriorityClass:
    """Make a PriorityClass of parsed YAML or JSON data, as `decode_pod` does."""
    return _decode(obj, PriorityClass, version="scheduling.k8s.io/v1")


def decode_persistent_volume(obj: object) -> PersistentVolume:
    """Make a PersistentVolume of parsed YAML or JSON data, as `decode_pod` does."""
    return _decode(obj, PersistentVolume, ignored=("status",))


def decode_persistent_volume_claim(obj: object) -> PersistentVolumeClaim:
    """Make a PersistentVolumeClaim of parsed YAML or JSON data, as `decode_pod` does."""
    return _decode(obj, PersistentVolumeClaim, ignored=("status",))


def decode_runtime_class(obj: object) -> RuntimeClass:
    """Make a RuntimeClass of parsed YAML or JSON data, as `decode_pod` does."""
    return _decode(obj, RuntimeClass, version="node.k8s.io/v1")


def _decode(
    obj: object, struct: type[_S], ignored: Iterable[str] = (), version: str = "v1", *, drops_unknown: bool = False
) -> _S:
    """An object of the type that is called like the struct. Raises FieldErrors."""
    if not isinstance(obj, Mapping):
        raise FieldErrors([_wrong_type("", "object", obj)])
    if wrong := _type_meta_errors(obj, {"apiVersion": version, "kind": struct.__name__}):
        raise FieldErrors(wrong)
    return _converted(
        {key: item for key, item in obj.items() if key not in ignored}, struct, drops_unknown=drops_unknown
    )


def _converted(obj: Mapping[object, object], struct: type[_S], *, drops_unknown: bool) -> _S:
    """Raises FieldErrors."""
    if struct is Pod and _is_plain(obj):
        with contextlib.suppress(msgspec.ValidationError):  # the walk has the words for what is wrong
            return msgspec.convert(obj, struct)
    walk = _Walk(drops_unknown=drops_unknown)
    value = walk.run(obj, struct)
    if walk.errors:
        raise FieldErrors(walk.errors)
    try:
        # msgspec has the last word: it is also what reads the object on the other side of a link.
        return msgspec.convert(value, struct)
    except msgspec.ValidationError as error:
        raise FieldErrors([FieldError("", str(error))]) from error


@functools.cache
def _order(struct: type[msgspec.Struct]) -> Mapping[str, int]:
    """Places of a struct's fields."""
    return {name: place for place, name in enumerate(struct_fields(struct))}


@functools.cache
def _required(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(name for name, field in struct_fields(struct).items() if field.required)


def _is_plain(obj: object) -> bool:
    """Whether the data holds nothing that a conversion takes and the walk changes or refuses: nulls, keys that are no
    texts, texts that are no Unicode, numbers that JSON cannot say or that are too large, too many values or levels."""
    level, count = [obj], 0
    for _ in range(MAX_FREE_FORM_DEPTH):
        below: list[object] = []
        for value in level:
            if isinstance(value, dict):
                if not _KEY_TYPES.issuperset(map(type, value)):
                    return False
                below += value
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif not _is_plain_leaf(value):
                return False
            if count + len(below) > MAX_VALUES:  # looked at for each value: an alias may be of many
                return False
        if not below:
            return True
        level, count = below, count + len(below)
    return False


def _is_plain_leaf(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() or _is_utf8(value)
    if isinstance(value, int):
        return value.bit_length() < _INT_BITS
    return isinstance(value, float) and math.isfinite(value)


def encode_pod(pod: Pod) -> bytes:
    """The pod as JSON. `decode_pod(json.loads(encode_pod(pod)))` gives it back, save for its status."""
    return msgspec.json.encode(pod)


def _type_meta_errors(obj: Mapping[object, object], wanted: Mapping[str, str]) -> list[FieldError]:
    return [error for name, value in wanted.items() for error in _type_meta_error(name, obj.get(name), value)]


def _type_meta_error(name: str, value: object, wanted: str) -> list[FieldError]:
    if value is None or value == "":
        return [required(name, f"must be {wanted}")]
    if not isinstance(value, str):
        return [_wrong_type(name, "string", value)]
    if value == wanted:
        return []
    return [not_supported(name, value, [wanted]) if is_type_word(value) else FieldError(name, f"must be {wanted}")]


class _Stop(Exception):
    """Enough was found."""


class _Walk:
    """One pass over parsed data beside its type: drops nulls, collects findings, ends at the maxima."""

    def __init__(self, *, drops_unknown: bool = False) -> None:
        self._drops_unknown = drops_unknown
        self.errors: list[FieldError] = []
        self._values_left = MAX_VALUES

    def run(self, value: Mapping[Any, Any], struct: type[msgspec.Struct]) -> object:
        """The value without its nulls; of no use once `errors` is not empty."""
        try:
            return self._struct(value, struct, "")
        except _Stop:
            return None

    def _report(self, error: FieldError) -> None:
        self.errors.append(error)
        if len(self.errors) >= MAX_FIELD_ERRORS:
            raise _Stop

    def _count_value(self) -> None:
        self._values_left -= 1
        if self._values_left < 0:
            self._report(FieldError("", f"more than {MAX_VALUES} values"))
            raise _Stop

    def _value(self, value: object, shape: Shape, path: str) -> object:
        self._count_value()
        match shape.kind, value:
            case Kind.LEAF, _:
                return self._leaf(value, shape.inner, path)
            case Kind.FREE_FORM, _:
                return self._free_form(value, path, MAX_FREE_FORM_DEPTH)
            case Kind.STRUCT, Mapping():
                return self._struct(value, shape.inner, path)
            case Kind.MAP, Mapping():
                return self._map(value, shape.inner, path)
            case Kind.LIST, list() | tuple():
                item = shape_of(shape.inner)
                return [self._value(member, item, f"{path}[{index}]") for index, member in enumerate(value)]
        self._report(_wrong_type(path, shape.kind.value, value))
        return None

    def _struct(self, value: Mapping[object, object], struct: type[msgspec.Struct], path: str) -> dict[str, object]:
        fields = struct_fields(struct)
        prefix = f"{path}." if path else ""
        for name in value:
            if name not in fields and not self._drops_unknown:
                self._report(FieldError(f"{prefix}{shown_key(name)}", _unknown_field(name, fields)))
        # Few fields of most structs are there: a volume has one of thirty sources.
        known = sorted(fields.keys() & value.keys(), key=_order(struct).__getitem__)
        present = {name: fields[name] for name in known if value[name] is not None}
        for name in _required(struct):
            if name not in present:
                self._report(required(f"{prefix}{name}"))
        return {name: self._value(value[name], field.shape, f"{prefix}{name}") for name, field in present.items()}

    def _map(self, value: Mapping[object, object], annotation: object, path: str) -> dict[object, object]:
        shape = shape_of(annotation)
        result: dict[object, object] = {}
        for key, item in value.items():
            below = f"{path}[{shown_key(key)}]"
            if isinstance(key, str) and not _is_utf8(key):
                self._report(FieldError(below, NO_UNICODE))
                continue
            # `key:` with nothing behind it: Go makes the zero value of it.
            text_or_item = "" if item is None and annotation in (str, bytes) else item
            result[self._leaf(key, str, below)] = self._value(text_or_item, shape, below)
        return result

    def _free_form(self, value: object, path: str, levels_left: int) -> object:
        self._count_value()
        if levels_left == 0:
            self._report(FieldError(path, f"nested more than {MAX_FREE_FORM_DEPTH} levels deep"))
            return None
        if isinstance(value, Mapping):
            return {
                self._leaf(key, str, path): self._free_form(item, f"{path}[{shown_key(key)}]", levels_left - 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._free_form(item, f"{path}[{index}]", levels_left - 1) for index, item in enumerate(value)]
        return self._leaf(value, str | Int64 | float | bool | None, path)

    def _leaf(self, value: object, annotation: object, path: str) -> object:
        if isinstance(value, str) and not _is_utf8(value):  # msgspec could not even say what is wrong with it
            self._report(FieldError(path, NO_UNICODE))
            return value.encode(errors="replace").decode()  # for whoever looks for more that is wrong
        if annotation is bytes:
            return self._bytes(value, path)
        try:
            msgspec.convert(value, annotation)
        except msgspec.ValidationError:
            self._report(_leaf_error(path, value, annotation))
        if isinstance(value, float) and not math.isfinite(value):
            self._report(FieldError(path, "is not a finite number"))
        return value

    def _bytes(self, value: object, path: str) -> bytes:
        """Base64 as Go's encoding/json takes it: the standard alphabet with padding, line breaks anywhere."""
        if not isinstance(value, str):
            self._report(_wrong_type(path, "string", value))
            return b""
        text = value.translate(_LINE_BREAKS)
        if not _BASE64.fullmatch(text):
            self._report(FieldError(path, "must be base64"))
            return b""
        return binascii.a2b_base64(text)


def _type_name(value: object) -> str:
    name = type(value).__name__
    return _JSON_TYPE_NAMES.get(name, name)


def _wrong_type(path: str, expected: str, value: object) -> FieldError:
    return FieldError(path, f"expected {expected}, got {_type_name(value)}")


def _unknown_field(name: object, known: Iterable[str]) -> str:
    by_lower_name = {field.lower(): field for field in known}
    from difflib import get_close_matches  # only for what is wrong

    close = get_close_matches(shown_key(name).lower(), by_lower_name, n=1)
    return f"unknown field{MEANT}{by_lower_name[close[0]]}?" if close else "unknown field"


def _leaf_error(path: str, value: object, annotation: object) -> FieldError:
    """Say what was expected. A value is repeated only where one of a few words was expected: others may be secret."""
    if isinstance(value, str) and len(value) > (max_length(annotation) or len(value)):
        return FieldError(path, f"Too long: may not be more than {max_length(annotation)} characters")
    choices = literal_values(annotation)
    if choices and isinstance(value, str):
        return not_supported(path, value, [choice for choice in choices if choice])
    if choices:
        return _wrong_type(path, "string", value)
    if isinstance(value, int) and not isinstance(value, bool) and _accepts(annotation, 0):
        bits = 64 if _accepts(annotation, 2**31) else 32
        return FieldError(path, f"does not fit into {bits} bits")
    expected = " or ".join(name for name, sample in _SAMPLES.items() if _accepts(annotation, sample))
    return _wrong_type(path, expected, value)


def _accepts(annotation: object, value: object) -> bool:
    try:
        msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        return False
    return True


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
