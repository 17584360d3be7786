"""The cluster as authenticator of tokens and as authorizer. Asked by the process that serves the port, with a client of
its own (docs/decisions/0059-cluster-client.md)."""

from __future__ import annotations

import hashlib
import os
from typing import Final

from aiohttp import web

from ipc.host.clock import Clock
from ipc.k8s.kubeconfig.client_tls import read_file
from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from workers.api_server.access.attributes import Attributes
from workers.api_server.access.reviews import (
    ALLOWED_S,
    DENIED_S,
    TOKEN_S,
    AnswerCache,
    access_review,
    is_granted,
    reviewed_user,
    token_review,
)
from workers.api_server.access.users import User
from workers.kubeclient.client import USER_AGENT, ApiClient
from workers.kubeclient.rate_limit import RateLimit
from workers.kubeclient.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS

MAX_TOKEN_CHARS: Final = 64 * 1024
"""Longest token that the cluster is asked about."""


class ClusterReviews:
    """For one event loop. Its client is made with the first question: the node may have no identity before."""

    def __init__(self, kubeconfig: str, node_name: str, clock: Clock, qps: float, burst: int) -> None:
        self._kubeconfig = kubeconfig
        self._node_name = node_name
        self._clock = clock
        self._limit = qps, burst
        self._client: ApiClient | None = None
        self._users: AnswerCache[User] = AnswerCache()
        self._permissions: AnswerCache[bool] = AnswerCache()

    async def user(self, token: str) -> User | None:
        """User of the token; None when it is nobody's.

        Raises ClusterError, ReviewError, KubeconfigError and OSError: the cluster cannot be asked.
        """
        if len(token) > MAX_TOKEN_CHARS:
            return None
        question = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        if known := self._users.find(question, self._clock.now().mono):
            return known
        body = token_review(token.encode(errors="replace").decode())
        found = reviewed_user(await self._asked().request("POST", TOKEN_REVIEWS.path(), body=body))
        if found is not None:
            self._users.keep(question, found, self._clock.now().mono + TOKEN_S)
        return found

    async def is_allowed(self, user: User, wanted: tuple[Attributes, ...]) -> bool:
        """Whether any of the permissions is the user's; the narrowest is asked about first. Raises as `user`."""
        for each in wanted:
            if await self._is_allowed(user, each):
                return True
        return False

    async def _is_allowed(self, user: User, wanted: Attributes) -> bool:
        question = (user, wanted)
        known = self._permissions.find(question, self._clock.now().mono)
        if known is not None:
            return known
        body = access_review(user, wanted, self._node_name)
        allowed = is_granted(await self._asked().request("POST", SUBJECT_ACCESS_REVIEWS.path(), body=body))
        self._permissions.keep(question, allowed, self._clock.now().mono + (ALLOWED_S if allowed else DENIED_S))
        return allowed

    def _asked(self) -> ApiClient:
        if self._client is None:
            access = decode_kubeconfig(read_file(self._kubeconfig), os.path.dirname(self._kubeconfig))
            self._client = ApiClient(access, self._clock, user_agent=USER_AGENT, limit=RateLimit(*self._limit))
        return self._client

    async def closed(self, _: web.Application) -> None:
        """End connections and what is under way, with the application whose users are asked about."""
        if self._client is not None:
            self._client.close()
