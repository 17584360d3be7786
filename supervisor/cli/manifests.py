"""Manifest files as the command line names them: read whole for the agent, or looked into for the names in it."""

from __future__ import annotations

import functools
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec

from ipc.host.text.safe_text import safe_text
from ipc.k8s.resources import registry
from supervisor.cli.options import Failure
from supervisor.client.http import WITHOUT_NAMESPACE

F = TypeVar("F", bound=Callable[..., object])

MAX_MANIFEST_BYTES: Final = 1024 * 1024
"""Largest manifest that the agent takes."""
MAX_GENERATED_BEGIN: Final = 58
RANDOM_CHARS: Final = 5
_RANDOM: Final = "bcdfghjklmnpqrstvwxz2456789"
"""apimachinery pkg/util/rand: no vowels, and nothing that looks like another."""
_GENERATE: Final = b"generateName"
_URLS: Final = ("http://", "https://")
_SUFFIXES: Final = (".json", ".yaml", ".yml")
RESOURCES: Final[Mapping[str, str]] = {resource.kind: resource.plural for resource in registry.APPLIED}
_TYPED_LISTS: Final[Mapping[str, str]] = {f"{kind}List": kind for kind in RESOURCES}

files_option: Final = click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILE",
    help="A manifest, a directory of them, a URL, or - for stdin.",
)

recursive_option: Final = click.option(
    "-R", "--recursive", is_flag=True, help="Look for manifests below the directories of -f, too."
)


def with_generated_names(manifest: Manifest) -> Manifest:
    """The manifest with a name for each object that states only how it begins (apiserver pkg/storage/names).

    What cannot be read stays as it is: the agent says why.
    """
    return manifest if _GENERATE not in manifest.body else _named(manifest)


def _named(manifest: Manifest) -> Manifest:
    from supervisor.sources.documents.reader import read_documents

    read = read_documents(manifest.body)
    if read.errors:
        return manifest
    documents = [document.value for document in read.documents]
    for value in documents:
        items = value.get("items") if isinstance(value, dict) else None
        for item in items if isinstance(items, list) else (value,):
            _give_name(item)
    return Manifest(manifest.name, b"\n---\n".join(map(msgspec.json.encode, documents)))


def _give_name(value: object) -> None:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if isinstance(metadata, dict) and not metadata.get("name") and isinstance(metadata.get("generateName"), str):
        begin = metadata["generateName"][:MAX_GENERATED_BEGIN]
        metadata["name"] = begin + "".join(secrets.choice(_RANDOM) for _ in range(RANDOM_CHARS))


class Kustomization(str):
    """A directory given with -k, among the files of -f."""


def manifest_options(command: F) -> F:
    """``-f`` and ``-k``, which fill the parameter ``files``. Raises click.UsageError for both (cli-runtime
    pkg/genericclioptions, FilenameOptions)."""

    @functools.wraps(command)
    def with_kustomization(
        *args: object, files: tuple[str, ...], kustomize: str | None, recursive: bool | None = None, **options: object
    ) -> object:
        if kustomize and files:
            raise click.UsageError("only one of -f or -k can be specified")
        if kustomize and recursive:
            raise click.UsageError("the -k flag can't be used with -f or -R")
        if recursive is not None:
            options["recursive"] = recursive
        return command(*args, files=(Kustomization(kustomize),) if kustomize else files, **options)

    kustomize = click.option(
        "-k", "--kustomize", metavar="DIRECTORY", help="What `kustomize build` makes of this directory."
    )
    return files_option(kustomize(with_kustomization))  # type: ignore[return-value]


class Target(msgspec.Struct, frozen=True):
    """Name of an object."""

    resource: str
    """Plural of one of `ipc.k8s.resources.registry.APPLIED`."""
    namespace: str
    """Empty for a resource that has none."""
    name: str


class Manifest(msgspec.Struct, frozen=True):
    """A manifest's text under the name that errors call it by."""

    name: str
    body: bytes


def read_manifests(files: Sequence[str], *, recursive: bool = False) -> Iterator[Manifest]:
    """Every file, URL and kustomization in turn; of a directory the manifests in it, also further below if
    ``recursive``. Raises Failure."""
    for file in files:
        if isinstance(file, Kustomization):
            yield Manifest(safe_text(file), _checked(file, _built(file)))
        elif file == "-":
            if sys.stdin is None:
                raise Failure("-: standard input is closed")
            yield Manifest("-", _checked("-", sys.stdin.buffer.read(MAX_MANIFEST_BYTES + 1)))
        elif file.startswith(_URLS):
            yield Manifest(safe_text(file), _checked(file, _downloaded(file)))
        else:
            path = Path(file)
            for found in _manifests_in(path, recursive=recursive) if path.is_dir() else [path]:
                yield Manifest(safe_text(str(found)), _read(found))


def _built(directory: str) -> bytes:
    from supervisor.cli.manifest_origins import built  # with what runs programs, for the few who need it

    return built(directory)


def _downloaded(url: str) -> bytes:
    from supervisor.cli.manifest_origins import read_url  # with an HTTP client, for the few who need it

    return read_url(url, MAX_MANIFEST_BYTES)


def _manifests_in(directory: Path, *, recursive: bool) -> list[Path]:
    below = directory.rglob("*") if recursive else directory.iterdir()
    found = sorted(path for path in below if path.suffix in _SUFFIXES and path.is_file())
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


def objects_in(manifest: Manifest, namespace: str) -> list[Target]:
    """Objects that the manifest is about; ``namespace`` is for those that state none. Raises Failure."""
    from supervisor.sources.documents.reader import read_documents

    read = read_documents(manifest.body)
    if read.errors:
        error = read.errors[0]
        where = ": ".join(part for part in (f"document {error.number}", error.field, error.message) if part)
        raise Failure(f"{manifest.name}: {where}")
    objects = [item for document in read.documents for item in _items(manifest, document.value)]
    if not objects:
        raise Failure(f"{manifest.name}: no pods or other objects in it")
    return [_target(manifest, kind, value, namespace) for kind, value in objects]


def _items(manifest: Manifest, document: Any) -> list[tuple[str, Any]]:
    """Kind and content of the document, or of what is listed in it."""
    kind = str(document.get("kind")) if isinstance(document, dict) else ""
    if kind == "List":
        return [found for item in document.get("items") or () for found in _items(manifest, item)]
    if kind in _TYPED_LISTS:
        return [(_TYPED_LISTS[kind], item) for item in document.get("items") or ()]
    if kind not in RESOURCES:
        raise Failure(f"{manifest.name}: kind {kind!r} is none of {', '.join((*RESOURCES, *_TYPED_LISTS))}, List")
    return [(kind, document)]


def _target(manifest: Manifest, kind: str, value: object, namespace: str) -> Target:
    meta = value.get("metadata") if isinstance(value, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(name, str):
        raise Failure(f"{manifest.name}: a {kind} without metadata.name")
    resource = RESOURCES[kind]
    return Target(resource, "" if resource in WITHOUT_NAMESPACE else str(meta.get("namespace") or namespace), name)


def parse_document(name: str, body: bytes) -> object:
    """The one document of a text, as plain data. Raises Failure."""
    from supervisor.sources.documents.reader import read_documents

    read = read_documents(body)
    if read.errors:
        error = read.errors[0]
        raise Failure(f"{name}: {': '.join(part for part in (error.field, error.message) if part)}", prefix="error: ")
    if len(read.documents) != 1:
        raise Failure(f"{name}: must be one document, not {len(read.documents)}", prefix="error: ")
    return read.documents[0].value
