"""Options of lists, watches and deletions, as queries and bodies say them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.servers.kube_api.failures import Cause, JsonObject, Refusal, bad_request, invalid, not_permitted


@dataclass(frozen=True)
class ListOptions:
    """Options of lists and watches."""

    watch: bool
    version: int | None
    """None is the newest, zero any."""
    match: str
    limit: int
    after: str
    """Where a list goes on: the key of the last object before."""
    at: int | None
    """Revision of the list that goes on."""
    timeout_s: float
    bookmarks: bool
    initial_events: bool
    fields: str
    labels: str


def list_options(query: Mapping[str, str]) -> ListOptions:
    """Raises Refusal."""
    watch, initial, match = _flag(query, "watch"), query.get("sendInitialEvents"), query.get("resourceVersionMatch", "")
    told = query.get("resourceVersion", "")
    version = _version(told)
    _check(watch=watch, initial=initial, match=match, told=told)
    at, after = _continued(query.get("continue", ""))
    return ListOptions(
        watch=watch,
        version=version,
        match=match,
        limit=_number(query, "limit"),
        after=after,
        at=at,
        timeout_s=float(_number(query, "timeoutSeconds")) or 1800.0,
        bookmarks=_flag(query, "allowWatchBookmarks"),
        initial_events=initial == "true",
        fields=query.get("fieldSelector", ""),
        labels=query.get("labelSelector", ""),
    )


def _check(*, watch: bool, initial: str | None, match: str, told: str) -> None:
    """ValidateListOptions (apimachinery pkg/apis/meta/internalversion/validation)."""
    if initial is not None and not watch:
        raise _wrong(not_permitted("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if initial is not None and match != "NotOlderThan":
        said = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise _wrong(not_permitted("resourceVersionMatch", said))
    if match and watch and initial is None:
        said = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise _wrong(not_permitted("resourceVersionMatch", said))
    if match and not told and initial is None:
        said = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise _wrong(not_permitted("resourceVersionMatch", said))
    if match == "Exact" and told == "0":
        said = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        raise _wrong(not_permitted("resourceVersionMatch", said))


def _wrong(cause: Cause) -> Refusal:
    return invalid("ListOptions", "", [cause], "meta.k8s.io")


def _version(told: str) -> int | None:
    if not told:
        return None
    if not told.isascii() or not told.isdigit():
        said = f'resourceVersion: Invalid value: "{told}": strconv.ParseUint: parsing "{told}": invalid syntax'
        raise bad_request(f"invalid resource version: {said}")
    return int(told)


def _number(query: Mapping[str, str], name: str) -> int:
    told = query.get(name, "0")
    if not told.lstrip("-").isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{told}": invalid syntax')
    return int(told)


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "false") in ("true", "1", "")


def continue_token(revision: int, last: str) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": last})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _continued(token: str) -> tuple[int | None, str]:
    if not token:
        return None, ""
    try:
        found = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(found["rv"]), str(found["start"])
    except (ValueError, KeyError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid") from None


@dataclass(frozen=True)
class DeleteOptions:
    grace_s: int | None
    uid: str
    version: str


def delete_options(query: Mapping[str, str], body: JsonObject | None) -> DeleteOptions:
    """The body's, else the query's. Raises Refusal."""
    if body is None:
        grace = _number(query, "gracePeriodSeconds") if "gracePeriodSeconds" in query else None
        policy = query.get("propagationPolicy")
        found: JsonObject = {}
    else:
        if body.get("kind") != "DeleteOptions":
            raise bad_request(f"{body.get('kind')} in version cannot be handled as a DeleteOptions")
        grace, policy, found = body.get("gracePeriodSeconds"), body.get("propagationPolicy"), body
    if policy not in (None, "Foreground", "Background", "Orphan"):
        said = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"'
        cause = Cause("propagationPolicy", said, "FieldValueNotSupported")
        raise invalid("DeleteOptions", "", [cause], "meta.k8s.io")
    conditions = found.get("preconditions") or {}
    return DeleteOptions(grace, conditions.get("uid", ""), conditions.get("resourceVersion", ""))
