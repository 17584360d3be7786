"""Pages about the agent: ``/configz``, ``/statusz`` and ``/flagz`` (component-base configz and zpages)."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec
from aiohttp import hdrs, web

from ipc.host.clock import rfc3339
from ipc.link.messages.api_server import ReadConfiguration
from workers.api_server.core.route import plain_text
from workers.api_server.core.status_errors import failure
from workers.api_server.store.site import AppState, json_answer, status_answer

COMPONENT: Final = "rootlet"
WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for"
    " debugging purposes only."
)
NOT_ACCEPTABLE: Final = "only the following media types are accepted: application/json, application/yaml, text/plain"
VERSIONS: Final = ("v1beta1", "v1alpha1")
PATHS: Final = ("/configz", "/debug", "/flagz", "/healthz", "/metrics")


class Pages:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def configz(self, _request: web.Request) -> web.Response:
        """The configuration in effect. Its kind is ours: `RootletConfiguration`."""
        return json_answer(b'{"kubeletconfig":' + msgspec.json.encode(await self._configuration()) + b"}")

    async def flagz(self, request: web.Request) -> web.Response:
        """The configuration as flat names, one a line."""
        flags = dict(flattened(await self._configuration(), ""))
        lines = "".join(f"{name}:{value}\n" for name, value in sorted(flags.items()))
        return _page(request, "Flagz", f"\n{COMPONENT} flagz\n{WARNING}\n{lines}", {"flags": flags})

    async def statusz(self, request: web.Request) -> web.Response:
        agent = await self._site.agent()
        up_s = max(0, int(self._site.clock.now().wall - agent.started_at))
        started = datetime.fromtimestamp(agent.started_at, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
        text = (
            f"\n{COMPONENT} statusz\n{WARNING}\n\nStarted= {started}\n"
            f"Up= {up_s // 3600} hr {up_s // 60 % 60:02} min {up_s % 60:02} sec\n"
            f"Python version= {platform.python_version()}\nBinary version= {agent.version}\nPaths= {' '.join(PATHS)}\n"
        )
        fields = {
            "startTime": rfc3339(agent.started_at),
            "uptimeSeconds": up_s,
            "pythonVersion": platform.python_version(),
            "binaryVersion": agent.version,
            "paths": PATHS,
        }
        return _page(request, "Statusz", text, fields)

    async def _configuration(self) -> dict[str, object]:
        reply = await self._site.master.ask(lambda request_id: ReadConfiguration(request_id=request_id))
        found: dict[str, object] = msgspec.json.decode(reply.message)
        return found


def flattened(section: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    """Dotted names and values as text."""
    for name, value in section.items():
        if isinstance(value, dict) and value:
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _page(request: web.Request, kind: str, text: str, fields: Mapping[str, object]) -> web.Response:
    """Text, or JSON of a version for whoever names it (zpages' negotiation); plain JSON is refused."""
    accept = request.headers.get(hdrs.ACCEPT, "*/*")
    if version := _version(accept, kind):
        group = "config.k8s.io"
        body = {"kind": kind, "apiVersion": f"{group}/{version}", "metadata": {"name": COMPONENT}, **fields}
        answer = json_answer(body)
        answer.headers[hdrs.CONTENT_TYPE] = f"application/json;g={group};v={version};as={kind}"
        return answer
    if any(word in accept for word in ("*/*", "text/*", "text/plain")):
        return plain_text(200, text)
    return status_answer(failure(406, NOT_ACCEPTABLE, reason="NotAcceptable"))


def _version(accept: str, kind: str) -> str:
    """The version that one of the media types asks for; empty without one."""
    for offered in accept.split(","):
        media, *parameters = (part.strip() for part in offered.split(";"))
        if media == "application/json" and f"as={kind}" in parameters:
            return next((version for version in VERSIONS if f"v={version}" in parameters), "")
    return ""
