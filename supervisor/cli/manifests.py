"""Manifest files as the command line names them: read whole for the agent, or looked into for their pods' names."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from supervisor.cli.options import Failure

MAX_MANIFEST_BYTES: Final = 1024 * 1024
"""Largest manifest that the agent takes."""
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_LISTS: Final = ("List", "PodList")

files_option: Final = click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE", help="A manifest, a directory of them, or - for stdin."
)


class Manifest(msgspec.Struct, frozen=True):
    """A manifest's text under the name that errors call it by."""

    name: str
    body: bytes


def read_manifests(files: Sequence[str]) -> Iterator[Manifest]:
    """Every file in turn; of a directory the manifests directly in it. Raises Failure."""
    for file in files:
        if file == "-":
            yield Manifest("-", _checked("-", sys.stdin.buffer.read(MAX_MANIFEST_BYTES + 1)))
            continue
        path = Path(file)
        for found in _manifests_in(path) if path.is_dir() else [path]:
            yield Manifest(str(found), _read(found))


def _manifests_in(directory: Path) -> list[Path]:
    found = sorted(path for path in directory.iterdir() if path.suffix in _SUFFIXES and path.is_file())
    if not found:
        raise Failure(f"{directory}: no manifests in it ({', '.join(_SUFFIXES)})")
    return found


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _checked(str(path), file.read(MAX_MANIFEST_BYTES + 1))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None


def _checked(name: str, body: bytes) -> bytes:
    if len(body) > MAX_MANIFEST_BYTES:
        raise Failure(f"{name}: larger than {MAX_MANIFEST_BYTES} bytes")
    return body


def pods_in(manifest: Manifest, namespace: str) -> list[tuple[str, str]]:
    """Namespace and name of its pods; ``namespace`` is for those that say none. Raises Failure."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.load_all(manifest.body, Loader=loader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Failure(f"{manifest.name}: {error}") from None
    pods = [pod for document in documents for pod in _pods(manifest, document)]
    if not pods:
        raise Failure(f"{manifest.name}: no pods in it")
    return [_pod_key(manifest, pod, namespace) for pod in pods]


def _pods(manifest: Manifest, document: Any) -> list[Any]:
    """The document, or what is listed in it."""
    if document is None:
        return []
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind in _LISTS:
        return list(document.get("items") or ())
    if kind != "Pod":
        raise Failure(f"{manifest.name}: kind {kind!r} is none of Pod, {', '.join(_LISTS)}")
    return [document]


def _pod_key(manifest: Manifest, pod: Any, namespace: str) -> tuple[str, str]:
    meta = pod.get("metadata") if isinstance(pod, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(name, str):
        raise Failure(f"{manifest.name}: a pod without metadata.name")
    return str(meta.get("namespace") or namespace), name
