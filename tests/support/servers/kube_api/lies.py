"""Answers of an API server that are not what was asked for: bodies, how they come, and who gets them."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from aiohttp import web

from tests.support.servers.kube_api.failures import JsonObject
from tests.support.servers.kube_api.routes import Route

DRIP_S: Final = 0.2
"""Between two bytes of a body that drips."""
MORE: Final = 1000
"""Bytes that an answer announces and does not have."""
Endpoint = tuple[str, str]
"""Kubernetes' verb, and the resource with its subresource: ``("patch", "pods/status")``."""


class Pace(Enum):
    """How a body comes."""

    WHOLE = auto()
    CUT = auto()
    """The connection ends before the announced length."""
    DRIP = auto()
    """One byte after the other, then as `CUT`."""


@dataclass(frozen=True)
class Lie:
    """An answer, with code 200."""

    name: str
    body: bytes
    media_type: str = "application/json"
    pace: Pace = Pace.WHOLE

    async def tell(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Answer a request with it."""
        if self.pace is Pace.WHOLE:
            return web.Response(body=self.body, headers={"Content-Type": self.media_type})
        headers = {"Content-Type": self.media_type, "Content-Length": str(len(self.body) + MORE)}
        response = web.StreamResponse(headers=headers)
        await response.prepare(raw)
        for index in range(len(self.body)):
            if raw.transport is None or raw.transport.is_closing():
                break
            await response.write(self.body[index : index + 1])
            await asyncio.sleep(DRIP_S if self.pace is Pace.DRIP else 0.0)
        if raw.transport is not None:
            raw.transport.abort()
        return response


def _object(metadata: str, spec: str = "{}", status: str = "{}") -> bytes:
    return f'{{"kind":"Pod","apiVersion":"v1","metadata":{metadata},"spec":{spec},"status":{status}}}'.encode()


_NAMED: Final = '{"name":"liar","namespace":"default","uid":"u-liar"}'
ITEMS: Final = (
    Lie("null", b"null"),
    Lie("list", b"[]"),
    Lie("text", b'"ok"'),
    Lie("number", b"7"),
    Lie("empty object", b"{}"),
    Lie("numbers for names", _object('{"name":7,"uid":[],"labels":7,"resourceVersion":{}}', '"x"', "[]")),
    Lie("nulls", _object("null", "null", "null")),
    Lie("another object", _object(_NAMED)),
    Lie("numbers inside", _object(_NAMED, '{"containers":{"name":7}}', '{"conditions":[null,7],"phase":{}}')),
    Lie("no UTF-8", _object('{"name":"NAME","uid":"NAME"}').replace(b"NAME", b"\xff\xfe")),
    Lie("raw surrogates", _object('{"name":"NAME","uid":"NAME"}').replace(b"NAME", b"\xed\xa0\x80")),
)
"""Values in the place of an object; a list with one of them can still be taken apart."""
LIES: Final = (
    *ITEMS,
    Lie("half pairs", _object(r'{"name":"\ud800","uid":"\udc00"}')),
    Lie("nothing", b""),
    Lie("page", b"<!doctype html>\n<html><title>Sign in</title></html>\n", "text/html"),
    Lie("nested lists", b"[" * 9000),
    Lie("nested objects", b'{"kind":"Pod","metadata":' + b'{"a":' * 9000),
    Lie("cut", _object(_NAMED)[:40], pace=Pace.CUT),
    Lie("drip", b'{"kind":"Pod"', pace=Pace.DRIP),
)
"""One answer of each kind."""
NO_OBJECTS: Final = tuple(lie for lie in LIES if lie.pace is Pace.WHOLE and b'"kind"' not in lie.body)
"""Answers without a kind."""
HUGE: Final = Lie("huge", b'{"kind":"Pod","metadata":{"name":"' + b"a" * (65 << 20) + b'"}}')
WATCH_TYPES: Final = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "NEW", 7, None)
_LAST_LINE: Final = b'{"type":"ERROR","object":null}\n'


def watch_lines() -> Iterator[bytes]:
    """Lines of a watch: each lie as an event's object, under all types in turn, and as a line of its own."""
    types = itertools.cycle(WATCH_TYPES)
    for lie in LIES:
        yield b'{"type":%b,"object":%b}\n' % (json.dumps(next(types)).encode(), lie.body)
        yield lie.body.rstrip() + b"\n"
    yield _LAST_LINE


@dataclass
class Liar:
    """Tells each endpoint every lie once; after them the truth."""

    lies: Sequence[Lie] = ()
    fewer: Mapping[Endpoint, Sequence[Lie]] = field(default_factory=dict)
    """Others for some endpoints, such as those at which a node is patient."""
    in_lists: bool = False
    """Whether lists have lies between their items."""
    told: Counter[Endpoint] = field(default_factory=Counter)
    """How many lies were told."""

    def lies_of(self, endpoint: Endpoint) -> Sequence[Lie]:
        """All lies for an endpoint. One of a watch has them in one line each, which counts as one."""
        return self.lies[:1] if endpoint[0] == "watch" else self.fewer.get(endpoint, self.lies)

    def next_for(self, route: Route) -> Lie | None:
        """The next lie in place of an answer. A watch is answered, and has `lines`."""
        if route.verb == "watch":
            return None
        endpoint = endpoint_of(route)
        lies = self.lies_of(endpoint)
        if self.told[endpoint] >= len(lies):
            return None
        self.told[endpoint] += 1
        return lies[self.told[endpoint] - 1]

    def lines(self, route: Route) -> Iterator[bytes]:
        """Before the next event of a watch."""
        endpoint = endpoint_of(route)
        if self.lies and not self.told[endpoint]:
            self.told[endpoint] += 1
            yield from watch_lines()

    def with_items(self, route: Route, answer: JsonObject) -> bytes:
        """A list, with lies between its items."""
        true = [json.dumps(item).encode() for item in answer["items"]]
        self.told[endpoint_of(route)] += 1
        lies = [lie.body for lie in ITEMS]
        head = json.dumps({name: value for name, value in answer.items() if name != "items"})[:-1].encode()
        return head + b',"items":[' + b",".join((*lies, *true, *lies)) + b"]}"


def endpoint_of(route: Route) -> Endpoint:
    """Endpoint of a route, whichever object it names."""
    return route.verb, f"{route.resource.plural}/{route.below}" if route.below else route.resource.plural
