"""`rootlet wait`: until objects exist, exist no more, or are in a condition (kubectl pkg/cmd/wait)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import click
import msgspec

from ipc.host import clock
from ipc.host.text.json_types import Json
from ipc.k8s.resources.registry import PODS, find_resource, in_category
from supervisor.cli.arguments import Selection, select
from supervisor.cli.manifests import files_option
from supervisor.cli.options import (
    FOREVER_S,
    Failure,
    agent,
    agent_options,
    duration_s,
    everything_option,
    listing_options,
)
from supervisor.client.http import AgentClient, PodKey, pod_key
from supervisor.client.reflector import Reflector

_JSONPATH: Final = "jsonpath="
POLL_PERIOD_S: Final = 1.0
"""How often kinds are looked at that cannot be watched, in seconds."""
_FORMAT: Final = (
    "jsonpath wait format must be --for=jsonpath='{.status.phase}'=Running or --for=jsonpath='{.status.podIP}'"
)
_PARTS: Final = re.compile(r"(\{.*\}|[^=]*)(?:(=)(.*))?", re.DOTALL)


class Goal(msgspec.Struct, frozen=True):
    """The state that is waited for."""

    reached: Callable[[Json | None], bool]
    """Whether an object, None when it is not there, is in it."""
    needs_none: bool = False
    """Whether it is the absence of the object."""
    may_come: bool = False
    """Whether it is waited for objects that are not there yet."""


def parse_goal(text: str) -> Goal:
    """``delete``, ``create``, ``condition=Ready``, ``condition=Ready=False``, ``jsonpath={.status.phase}=Running`` or
    ``jsonpath={.status.podIP}``. Raises click.BadParameter."""
    if text.lower() == "delete":
        return Goal(lambda obj: obj is None, needs_none=True)
    if text.lower() == "create":
        return Goal(lambda obj: obj is not None, may_come=True)
    if text.startswith(_JSONPATH):
        return Goal(_json_path_goal(text.removeprefix(_JSONPATH)))
    kind, _, rest = text.partition("=")
    name, _, value = rest.partition("=")
    if kind != "condition" or not name:
        raise click.BadParameter(f'unrecognized condition: "{text}"', param_hint="--for")
    return Goal(lambda obj: obj is not None and condition_is(obj, name, value or "True"))


def condition_is(obj: Json, name: str, value: str) -> bool:
    """Names and values are compared without regard to case (wait.go, ConditionalWait)."""
    conditions = obj.get("status", {}).get("conditions", ())
    found = next((c for c in conditions if c["type"].casefold() == name.casefold()), None)
    return found is not None and bool(found["status"].casefold() == value.casefold())


def _json_path_goal(text: str) -> Callable[[Json | None], bool]:
    """(wait.go, processJSONPathInput, JSONPathWait)"""
    from supervisor.cli.output.jsonpath import JsonPath, as_text
    from supervisor.cli.output.jsonpath_parser import JsonPathError, relaxed

    parts = _PARTS.fullmatch(text)
    if parts is None or not parts[1] or (parts[2] and not parts[3]):
        raise click.BadParameter(_FORMAT, param_hint="--for")
    wanted = None if parts[2] is None else parts[3].strip("'\"")
    try:
        path = JsonPath(relaxed(parts[1].strip("'\"")))
    except JsonPathError as error:
        raise click.BadParameter(str(error), param_hint="--for") from None

    def reached(obj: Json | None) -> bool:
        if obj is None:
            return False
        try:
            found = [value for values in path.find(obj) for value in values]
        except JsonPathError:
            return False  # the object may come to have what the path needs
        if wanted is None:
            return bool(found)
        if len(found) > 1:
            raise Failure("given jsonpath expression matches more than one value", prefix="error: ")
        if found and isinstance(found[0], dict | list):
            message = "jsonpath leads to a nested object or list which is not supported"
            raise Failure(message, prefix="error: ")
        return bool(found) and as_text(found[0]) == wanted

    return reached


@click.command()
@click.argument("words", nargs=-1, metavar="[TYPE/NAME...]")
@files_option
@click.option("-R", "--recursive/--no-recursive", default=True, help="Manifests below the directories of -f, too.")
@click.option(
    "--for",
    "goal_text",
    required=True,
    metavar="GOAL",
    help="create, delete, condition=NAME[=VALUE] or jsonpath=PATH[=VALUE].",
)
@everything_option
@click.option("--timeout", callback=duration_s, default="30s", show_default=True, help="How long; 0 looks once.")
@listing_options
@agent_options
@click.pass_context
def wait(
    ctx: click.Context,
    words: tuple[str, ...],
    files: tuple[str, ...],
    recursive: bool,
    goal_text: str,
    everything: bool,
    timeout: float,
    namespace: str,
    all_namespaces: bool,
    selector: str,
    field_selector: str,
) -> None:
    """Wait until objects are in a condition, there, or gone.

    \b
    rootlet wait --for=condition=Ready pod/web pod/db --timeout=60s
    rootlet wait --for=delete pod/web
    rootlet wait --for=jsonpath='{.status.phase}'=Running pods --all
    rootlet wait --for=create configmap/web
    """
    goal = parse_goal(goal_text)
    selected = bool(everything or selector or field_selector)
    selections = _selections(words, files, None if all_namespaces else namespace, recursive=recursive)
    if any(each.names for each in selections) == selected:
        raise click.UsageError("name the objects, or give --all or a selector")
    query = {"labelSelector": selector or None, "fieldSelector": field_selector or None}
    with agent(ctx) as client:
        waits = [_Wait(client, selection, goal, query) for selection in selections]
        if not any(each.left for each in waits) and not goal.needs_none:
            raise Failure("no matching resources found", prefix="error: ")
        problems = [problem for each in waits for problem in each.run(FOREVER_S if timeout < 0 else timeout)]
    if problems:
        raise Failure("\n".join(problems), prefix="")


def _selections(
    words: Sequence[str], files: Sequence[str], namespace: str | None, *, recursive: bool
) -> Sequence[Selection]:
    """Pods where no kind is said: as bare names, or of a selector."""
    if not files and not any("/" in word for word in words) and (not words or not _is_kind(words[0])):
        words = (PODS.plural, *words)
    return select(words, files, namespace, recursive=recursive)


def _is_kind(word: str) -> bool:
    return all(find_resource(part) is not None or in_category(part) for part in word.split(","))


class _Wait:
    """Objects of one kind that are waited for."""

    def __init__(self, client: AgentClient, selection: Selection, goal: Goal, query: Mapping[str, str | None]) -> None:
        self._resource = selection.resource
        self._goal = goal
        self._objects = Reflector(client, selection.resource.list_path(selection.namespace), query)
        self._objects.list()
        place = (selection.namespace or "") if selection.resource.is_namespaced else ""
        named = [(place, name) for name in selection.names]
        self.left: list[PodKey] = named or [pod_key(found) for found in self._objects.objects.values()]

    def run(self, timeout_s: float) -> list[str]:
        """Say of each object when it is as wanted; what is to be said of the others.

        An object that does not exist has reached its end, silently, and will never be anything else but created.
        """
        missing = [key for key in self.left if key not in _by_key(self._objects)]
        if not self._goal.may_come:
            self.left = [key for key in self.left if key not in missing]
        self._wait(timeout_s)
        reported = [] if self._goal.needs_none or self._goal.may_come else missing
        kind = self._resource.plural
        return [
            *(f'Error from server (NotFound): {kind} "{name}" not found' for _, name in reported),
            *(f"error: timed out waiting for the condition on {kind}/{name}" for _, name in self.left),
        ]

    def _wait(self, timeout_s: float) -> None:
        if self._resource.is_watched:
            self._objects.wait_until(self._all_reached, timeout_s)
            return
        deadline = clock.monotonic() + timeout_s
        while not self._all_reached() and clock.monotonic() < deadline:
            time.sleep(min(POLL_PERIOD_S, max(0.0, deadline - clock.monotonic())))
            self._objects.list()

    def _all_reached(self) -> bool:
        objects = _by_key(self._objects)
        done = [key for key in self.left if self._goal.reached(objects.get(key))]
        click.echo("".join(f"{self._resource.singular}/{name} condition met\n" for _, name in done), nl=False)
        self.left = [key for key in self.left if key not in done]
        return not self.left


def _by_key(found: Reflector) -> dict[PodKey, Json]:
    return {pod_key(obj): obj for obj in found.objects.values()}
