"""Content of ConfigMaps and Secrets as `rootlet create` is given it (kubectl pkg/cmd/create, create_configmap.go)."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ipc.host.text.json_types import JsonObject
from supervisor.cli.options import Failure

MAX_DATA_BYTES: Final = 1024 * 1024
"""Most that all values may have together."""
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_VARIABLE: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")

Data = Mapping[str, bytes]


def read_data(literals: Sequence[str], files: Sequence[str], env_files: Sequence[str]) -> Data:
    """Keys and values in the order in which they were given. Raises Failure."""
    if env_files and (literals or files):
        raise Failure("from-env-file cannot be combined with from-file or from-literal", prefix="error: ")
    found: dict[str, bytes] = {}
    left = MAX_DATA_BYTES
    for key, value in _pairs(literals, files, env_files):
        if not _KEY.fullmatch(key):
            raise Failure(
                f'"{key}" is not a valid key name: only letters, digits, -, _ and . may stand in it', prefix="error: "
            )
        if key in found:
            raise Failure(f'cannot add key "{key}", another key by that name already exists', prefix="error: ")
        left -= len(value)
        if left < 0:
            raise Failure(f"more than {MAX_DATA_BYTES} bytes", prefix="error: ")
        found[key] = value
    return found


def _pairs(literals: Sequence[str], files: Sequence[str], env_files: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for file in files:
        yield from _of_file(file)
    for literal in literals:
        key, equals, value = literal.partition("=")
        if not (equals and key):
            raise Failure(f"invalid literal source {literal}, expected key=value", prefix="error: ")
        yield key, value.encode()
    for file in env_files:
        yield from _of_env_file(Path(file))


def _of_file(source: str) -> Iterator[tuple[str, bytes]]:
    """``key=path``, ``path``, or every file with a name that is a key directly in a directory."""
    key, equals, name = source.rpartition("=")
    if equals and not (key and name):
        raise Failure(f"invalid file source {source}, expected [key=]path", prefix="error: ")
    path = Path(name)
    if path.is_dir():
        if key:
            raise Failure("cannot give a key name for a directory path", prefix="error: ")
        for found in sorted(path.iterdir()):
            if found.is_file() and _KEY.fullmatch(found.name):
                yield found.name, _content(found)
    else:
        yield key or path.name, _content(path)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_DATA_BYTES + 1)
    except OSError as error:
        raise Failure(f"error reading {path}: {error.strerror}", prefix="error: ") from None


def _of_env_file(path: Path) -> Iterator[tuple[str, bytes]]:
    """Lines ``KEY=VALUE``, without comments (pkg/cmd/util/env_file.go). A line without a value takes the variable's of
    this process."""
    for number, line in enumerate(_content(path).decode("utf-8-sig", errors="replace").splitlines(), 1):
        text = line.lstrip()
        if not text or text.startswith("#"):
            continue
        key, equals, value = text.partition("=")
        if not _VARIABLE.fullmatch(key):
            raise Failure(f'{path}:{number}: "{key}" is not a valid key name', prefix="error: ")
        yield key, (value if equals else os.environ.get(key, "")).encode()


def config_map(name: str, data: Data) -> JsonObject:
    """A ConfigMap: values that are text as they are, others in base64."""
    texts: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, value in data.items():
        try:
            texts[key] = value.decode()
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(value).decode()
    content = {"data": texts, "binaryData": binary}
    stated = {field: values for field, values in content.items() if values}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **stated}


def secret_of(name: str, secret_type: str, data: Data) -> JsonObject:
    """A Secret of a type."""
    values = {key: base64.b64encode(value).decode() for key, value in data.items()}
    stated = {"data": values} if values else {}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": secret_type, **stated}


def registry_secret(name: str, server: str, user: str, password: str, email: str) -> JsonObject:
    """A Secret for pulls (pkg/cmd/create/create_secret_docker.go)."""
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    login = {"username": user, "password": password, "email": email, "auth": auth}
    stated = {key: value for key, value in login.items() if value}
    content = json.dumps({"auths": {server: stated}}, separators=(",", ":")).encode()
    return secret_of(name, "kubernetes.io/dockerconfigjson", {".dockerconfigjson": content})
