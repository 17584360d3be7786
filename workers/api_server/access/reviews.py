"""TokenReviews and SubjectAccessReviews: their bodies, their answers, and how long these count (apiserver
plugin/pkg/authenticator/token/webhook, plugin/pkg/authorizer/webhook; pkg/kubelet/server/auth.go). Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from workers.api_server.access.attributes import Attributes
from workers.api_server.access.users import User

TOKEN_S: Final = 120.0
ALLOWED_S: Final = 300.0
DENIED_S: Final = 30.0
"""How long an answer counts, in seconds: of a token that is somebody's, of a permission, of its refusal (the kubelet's
defaults). A token that is nobody's is asked about each time, as it may be somebody's by then."""
MAX_ANSWERS: Final = 4096
"""Most answers of each kind that are kept; then the one that was used longest ago goes."""

T = TypeVar("T")


class ReviewError(Exception):
    """An answer that is no review."""


class _UserInfo(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _UserInfo = _UserInfo()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


_TOKEN_REVIEW: Final = msgspec.json.Decoder(_TokenReview)
_ACCESS_REVIEW: Final = msgspec.json.Decoder(_AccessReview)


def token_review(token: str) -> bytes:
    """Body of the question whose token it is."""
    return msgspec.json.encode(
        {
            "kind": "TokenReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "spec": {"token": token},
            "status": {"user": {}},
        }
    )


def reviewed_user(answer: bytes) -> User | None:
    """User of the token; None when it is nobody's. Raises ReviewError."""
    status = _decoded(_TOKEN_REVIEW, answer).status
    if not status.authenticated:
        return None
    user = status.user
    extra = tuple((name, values) for name, values in sorted((user.extra or {}).items()))
    return User(user.username, user.groups or (), user.uid, extra)


def access_review(user: User, wanted: Attributes, node_name: str) -> bytes:
    """Body of the question whether the user may do that to the node."""
    spec: dict[str, object] = {
        "resourceAttributes": {
            "verb": wanted.verb,
            "version": "v1",
            "resource": wanted.resource,
            "subresource": wanted.subresource,
            "name": node_name,
        },
        "user": user.name,
        "groups": list(user.groups),
    }
    if user.extra:
        spec["extra"] = dict(user.extra)
    if user.uid:
        spec["uid"] = user.uid
    return msgspec.json.encode(
        {
            "kind": "SubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": False},
        }
    )


def is_granted(answer: bytes) -> bool:
    """Whether the user may. Raises ReviewError."""
    status = _decoded(_ACCESS_REVIEW, answer).status
    return status.allowed and not status.denied


class AnswerCache(Generic[T]):
    """Answers by question, for their time; bounded."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()

    def find(self, question: Hashable, now: float) -> T | None:
        """The answer that still counts; ``now`` in monotonic seconds."""
        ends_at, answer = self._answers.get(question, (now, None))
        if now >= ends_at:
            self._answers.pop(question, None)
            return None
        self._answers.move_to_end(question)
        return answer

    def keep(self, question: Hashable, answer: T, until: float) -> None:
        """Give this answer until then."""
        self._answers[question] = (until, answer)
        self._answers.move_to_end(question)
        while len(self._answers) > MAX_ANSWERS:
            self._answers.popitem(last=False)


def _decoded(decoder: msgspec.json.Decoder[T], answer: bytes) -> T:
    try:
        return decoder.decode(answer)
    except UNDECODABLE:
        raise ReviewError("the cluster's answer is no review") from None
