"""Tokens: those of service accounts (TokenRequest), bootstrap tokens, and what TokenReview says of them."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.support.servers.kube_api.failures import Cause, JsonObject, invalid
from tests.support.servers.kube_api.requests import User

AUDIENCE: Final = "https://kubernetes.default.svc.cluster.local"
MIN_LIFETIME_S: Final = 600
MAX_LIFETIME_S: Final = 1 << 32


class Tokens:
    """Every token that somebody may use, with its user and its end."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._users: dict[str, tuple[User, datetime | None, tuple[str, ...]]] = {}

    def add(self, user: User, token: str = "") -> str:
        """A token for a user, without an end."""
        token = token or secrets.token_urlsafe(16)
        self._users[token] = (user, None, (AUDIENCE,))
        return token

    def add_bootstrap(self, token: str) -> None:
        """``abcdef.0123456789abcdef``."""
        groups = ("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated")
        self.add(User(f"system:bootstrap:{token.partition('.')[0]}", groups), token)

    def revoke(self, token: str) -> None:
        self._users.pop(token, None)

    def user(self, token: str, audience: str = AUDIENCE) -> User | None:
        """Owner of the token, if it is one now and for that audience."""
        user, ends, audiences = self._users.get(token, (None, None, ()))
        if (ends is not None and self._now() >= ends) or audience not in audiences:
            return None
        return user

    def issue(self, namespace: str, account: JsonObject, request: JsonObject) -> JsonObject:
        """The TokenRequest with its token (pkg/registry/core/serviceaccount/storage/token.go). Raises Refusal."""
        spec = request.setdefault("spec", {})
        lifetime = spec.setdefault("expirationSeconds", 3600)
        _check(lifetime)
        audiences = spec.get("audiences") or [AUDIENCE]
        spec["audiences"] = audiences
        name, now = account["metadata"]["name"], self._now()
        ends = now + timedelta(seconds=lifetime)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        user = User(f"system:serviceaccount:{namespace}:{name}", groups, account["metadata"]["uid"])
        token = _jwt(user.name, audiences, now, ends, spec.get("boundObjectRef"))
        self._users[token] = (user, ends, tuple(audiences))
        request["metadata"] = {"name": name, "namespace": namespace, "creationTimestamp": _rfc3339(now)}
        request["status"] = {"token": token, "expirationTimestamp": _rfc3339(ends)}
        return request

    def review(self, review: JsonObject) -> JsonObject:
        """The TokenReview with its status."""
        told = review.get("spec", {}).get("token", "")
        audiences = review.get("spec", {}).get("audiences") or [AUDIENCE]
        matching = [(self.user(told, audience), audience) for audience in audiences]
        found = [(user, audience) for user, audience in matching if user is not None]
        if not found:
            said = "[invalid bearer token, token lookup failed]"
            return review | {"status": {"user": {}, "error": said}}
        user = found[0][0]
        shown: JsonObject = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
        shown["extra"] = {name: list(values) for name, values in user.extra.items()}
        status = {"authenticated": True, "user": {key: value for key, value in shown.items() if value}}
        return review | {"status": status | {"audiences": [audience for _, audience in found]}}


def _check(lifetime: int) -> None:
    if not MIN_LIFETIME_S <= lifetime <= MAX_LIFETIME_S:
        bound = "less than 10 minutes" if lifetime < MIN_LIFETIME_S else "larger than 1<<32 seconds"
        said = f"Invalid value: {lifetime}: may not specify a duration {bound}"
        raise invalid("TokenRequest", "", [Cause("spec.expirationSeconds", said)], "authentication.k8s.io")


def _jwt(subject: str, audiences: list[str], begins: datetime, ends: datetime, bound: JsonObject | None) -> str:
    """In the shape of one; nobody but this server verifies it."""
    claims: JsonObject = {"aud": audiences, "iss": AUDIENCE, "sub": subject, "jti": secrets.token_hex(8)}
    claims |= {"iat": int(begins.timestamp()), "nbf": int(begins.timestamp()), "exp": int(ends.timestamp())}
    claims |= {"kubernetes.io": {"pod": bound}} if bound else {}
    parts = [json.dumps({"alg": "ES256", "kid": "test"}).encode(), json.dumps(claims).encode(), secrets.token_bytes(64)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
