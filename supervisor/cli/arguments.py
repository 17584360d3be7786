"""Objects as people name them on a command line (cli-runtime pkg/resource, builder.go): ``pods``, ``pods,events``,
``po web db``, ``po/web ev/x``, ``all``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from ipc.resources.registry import find_resource, in_category
from ipc.resources.resource import Resource
from supervisor.cli.options import Failure


class Wanted(msgspec.Struct, frozen=True):
    """Objects of one kind: all of them, or those of these names."""

    resource: Resource
    names: tuple[str, ...] = ()


def parse_wanted(words: Sequence[str]) -> list[Wanted]:
    """Parse the words, in their order. Raises Failure with kubectl's words."""
    if any("/" in word for word in words):
        return _grouped(_pair(word) for word in words)
    types, names = words[0], tuple(words[1:])
    return [Wanted(resource, names) for word in types.split(",") if word for resource in _resources(word)]


def names_several_kinds(words: Sequence[str], wanted: Iterable[Wanted]) -> bool:
    """Whether rows must say which kind they are (kubectl pkg/cmd/util, MultipleTypesRequested)."""
    return any(in_category(word) for word in words) or len({each.resource.plural for each in wanted}) > 1


def resource_named(word: str) -> Resource:
    """The one kind that a word names. Raises Failure."""
    found = find_resource(word)
    if found is None:
        raise Failure(f'the server doesn\'t have a resource type "{word}"', prefix="error: ")
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


def _grouped(pairs: Iterable[tuple[Resource, str]]) -> list[Wanted]:
    """Neighbours of one kind together: they share a table."""
    return list(_groups(list(pairs)))


def _groups(pairs: list[tuple[Resource, str]]) -> Iterator[Wanted]:
    for plural, group in groupby(pairs, key=lambda pair: pair[0].plural):
        found = list(group)
        assert found[0][0].plural == plural
        yield Wanted(found[0][0], tuple(name for _, name in found))
