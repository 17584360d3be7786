"""Objects as people name them on a command line (cli-runtime pkg/resource, builder.go): ``pods``, ``pods,events``,
``po web db``, ``po/web ev/x``, ``all``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from ipc.k8s.resources.registry import BY_PLURAL, RESOURCES, find_resource, in_category
from ipc.k8s.resources.resource import Resource
from supervisor.cli.manifests import Manifest, objects_in, read_manifests
from supervisor.cli.options import DEFAULT_NAMESPACE, Failure
from supervisor.cli.suggestions import did_you_mean


class Selection(msgspec.Struct, frozen=True):
    """Objects of one kind in one place: all of them, or those of these names."""

    resource: Resource
    namespace: str | None
    """None is all of them."""
    names: tuple[str, ...] = ()


def select(
    words: Sequence[str], files: Sequence[str], namespace: str | None, *, recursive: bool = False
) -> list[Selection]:
    """Selections of a command line, by words or by manifests, which with ``recursive`` may lie below directories;
    ``namespace`` is None for all. Raises Failure with kubectl's words."""
    if files and words:
        raise Failure(
            "when paths, URLs, or stdin is provided as resource input, you may not specify resource arguments as well",
            prefix="error: ",
        )
    if files:
        read = read_manifests(files, recursive=recursive)
        return list(_in_manifests(read, DEFAULT_NAMESPACE if namespace is None else namespace))
    found = _parsed(words)
    if namespace is None and any(names and resource.is_namespaced for resource, names in found):
        raise Failure("a resource cannot be retrieved by name across all namespaces", prefix="error: ")
    return [Selection(resource, namespace, names) for resource, names in found]


def _in_manifests(manifests: Iterable[Manifest], namespace: str) -> Iterator[Selection]:
    """Neighbours of one kind and place together."""
    targets = [target for manifest in manifests for target in objects_in(manifest, namespace)]
    for (plural, place), group in groupby(targets, key=lambda target: (target.resource, target.namespace)):
        yield Selection(BY_PLURAL[plural], place, tuple(target.name for target in group))


def _parsed(words: Sequence[str]) -> list[tuple[Resource, tuple[str, ...]]]:
    if any("/" in word for word in words):
        return list(_grouped([_pair(word) for word in words]))
    types, names = words[0], tuple(words[1:])
    return [(resource, names) for word in types.split(",") if word for resource in _resources(word)]


def are_several_kinds(selections: Iterable[Selection]) -> bool:
    """Whether rows must say which kind they are (kubectl pkg/cmd/get, multipleGVKsRequested)."""
    return len({each.resource.plural for each in selections}) > 1


def resource_named(word: str) -> Resource:
    """The one kind that a word names. Raises Failure."""
    found = find_resource(word)
    if found is None:
        alike = did_you_mean(word, (name for resource in RESOURCES for name in resource.names))
        raise Failure(f'the server doesn\'t have a resource type "{word}"{alike}', prefix="error: ")
    return found


def _resources(word: str) -> Sequence[Resource]:
    return in_category(word) or (resource_named(word),)


def _pair(word: str) -> tuple[Resource, str]:
    kind, slash, name = word.partition("/")
    if not slash:
        raise Failure(
            "there is no need to specify a resource type as a separate argument when passing arguments in resource/name"
            " form (e.g. 'kubectl get resource/<resource_name>' instead of 'kubectl get resource"
            " resource/<resource_name>'".replace("kubectl", "rootlet"),
            prefix="error: ",
        )
    if not kind or not name or "/" in name:
        raise Failure("arguments in resource/name form may not have more than one slash", prefix="error: ")
    return resource_named(kind), name


def _grouped(pairs: Sequence[tuple[Resource, str]]) -> Iterator[tuple[Resource, tuple[str, ...]]]:
    """Neighbours of one kind together: they share a table."""
    for plural, group in groupby(pairs, key=lambda pair: pair[0].plural):
        yield BY_PLURAL[plural], tuple(name for _, name in group)
