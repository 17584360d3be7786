"""Manifests given to the agent whole: `rootlet apply`, `create` and `replace`."""

from __future__ import annotations

from collections.abc import Iterable

from ipc.host.text.json_types import JsonObject
from supervisor.cli.changing.changes import CLIENT, ChangeReport, object_name, warn
from supervisor.cli.manifests import Manifest, objects_in
from supervisor.cli.options import DEFAULT_NAMESPACE, Failure
from supervisor.client.http import AgentClient


def apply_manifests(
    client: AgentClient,
    manifests: Iterable[Manifest],
    report: ChangeReport,
    *,
    verb: str = "apply",
    namespace: str = "",
    done: str = "",
    quiet: bool = False,
) -> list[JsonObject]:
    """Every manifest whole or not at all; the objects as they became, where they are shown. ``done`` is told instead of
    what the agent says it did. Raises Failure with all that was refused, after the others were applied."""
    problems: list[str] = []
    lines: list[str] = []
    objects: list[JsonObject] = []
    for manifest in manifests:
        if report.dry_run == CLIENT and verb != "apply":
            lines += client_lines(manifest, report, verb, namespace)
            continue
        result = client.apply(
            manifest.body,
            manifest.name,
            verb=verb,
            namespace=namespace,
            dry_run=report.is_dry,
            show=bool(report.output),
        )
        warn(result)
        lines += [_reported(line, report, done) for line in result.results]
        objects += result.objects
        if result.failed:
            problems.append(result.message or result.reason)
    if not quiet:
        report.show(lines, objects)
    if problems:
        raise Failure("\n".join(problems), prefix="error: ")
    return objects


def _reported(line: str, report: ChangeReport, done: str) -> str:
    """The agent's line, with what was done in this command's words."""
    name, _, outcome = line.removesuffix(" (server dry run)").partition(" ")
    return report.line(name, done or outcome)


def client_lines(manifest: Manifest, report: ChangeReport, verb: str, namespace: str) -> list[str]:
    """Lines of a dry run that asks no agent."""
    done = f"{verb.removesuffix('e')}ed"
    return [report.line(object_name(target), done) for target in objects_in(manifest, namespace or DEFAULT_NAMESPACE)]
