"""May this user do that? By the rules of the configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from workers.api_server.access.attributes import Attributes
from workers.api_server.access.users import User

EVERYTHING: Final = "*"
GROUP: Final = "group:"

Rules = Mapping[str, tuple[str, ...]]
"""User, or ``group:`` and a group -> subresources."""


def is_allowed(user: User, wanted: tuple[Attributes, ...], rules: Rules | None) -> bool:
    """Whether any of the permissions is the user's. Without rules everything is (authorization mode AlwaysAllow)."""
    if rules is None:
        return True
    holders = [f"{GROUP}{group}" for group in user.groups]
    if not user.name.startswith(GROUP):  # a certificate can name its user as it likes
        holders.append(user.name)
    held = {subresource for holder in holders for subresource in rules.get(holder, ())}
    return EVERYTHING in held or any(each.subresource in held for each in wanted)


def unanswered(user: User, wanted: tuple[Attributes, ...]) -> str:
    """The kubelet's words where nobody says what a user may (pkg/kubelet/server/server.go, InstallAuthFilter)."""
    first = wanted[0]
    return (
        f"Authorization error (user={user.name}, verb={first.verb}, resource={first.resource},"
        f" subresource={first.subresource})"
    )


def forbidden(user: User, wanted: tuple[Attributes, ...]) -> str:
    """The kubelet's words (pkg/kubelet/server/server.go, InstallAuthFilter)."""
    first, subresources = wanted[0], " ".join(each.subresource for each in wanted)
    return (
        f"Forbidden (user={user.name}, verb={first.verb}, resource={first.resource}, subresource(s)=[{subresources}])\n"
    )
