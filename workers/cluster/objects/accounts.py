"""Service accounts of the pods for whose images a provider of logins wants to know them: read by GET, once for each pod
(pkg/credentialprovider/plugin, getServiceAccountData)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ipc.host.text.safe_text import safe_line
from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.cluster_values import DEFAULT_EXPIRATION_S, PodToken, TokenRequest
from ipc.k8s.podobjects.registry_login import PullAccount
from ipc.link.eventloop.tasks import BackgroundTasks, restarted
from ipc.link.wire.credential_provider import CredentialProvider, TokenAttributes
from workers.cluster.objects.token_state import Attempts
from workers.kubeclient.errors import ClusterError, check_name
from workers.kubeclient.protocol import Client
from workers.kubeclient.resources import SERVICE_ACCOUNTS

log = logging.getLogger(__name__)

UNREAD: Final = "it was not read yet"


class _Meta(msgspec.Struct, frozen=True):
    name: str
    uid: str = ""
    annotations: dict[str, str] = {}


class _Account(msgspec.Struct, frozen=True):
    """The part of a core/v1 ServiceAccount that is read."""

    metadata: _Meta


_ACCOUNT: Final = msgspec.json.Decoder(_Account)


class Accounts:
    """The accounts of each pod that a provider asks about, with the tasks that read them."""

    def __init__(
        self,
        client: Client,
        providers: Sequence[CredentialProvider],
        changed: Callable[[str], None],
        tasks: BackgroundTasks,
    ) -> None:
        """``changed``: called with the UID of a pod of whose account something else is known."""
        self._client = client
        self._providers = tuple(provider for provider in providers if provider.tokens is not None)
        self._changed = changed
        self._tasks = tasks
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._tried: dict[str, asyncio.Event] = {}
        self._found: dict[str, PullAccount] = {}

    def requests(self, pod: Pod) -> tuple[TokenRequest, ...]:
        """Tokens that the providers of its images want."""
        audiences = dict.fromkeys(wanted.audience for wanted in self._wanted(pod))
        return tuple(TokenRequest(audience, DEFAULT_EXPIRATION_S) for audience in audiences)

    def state(self, pod: Pod) -> None:
        """The pod's account is read, if it is asked about and was not yet."""
        uid = pod.metadata.uid
        if uid in self._reading or not self._wanted(pod):
            return
        self._tried[uid] = asyncio.Event()
        name = f"service account of {pod.metadata.namespace}/{pod.metadata.name}"
        self._reading[uid] = self._tasks.spawn(restarted(lambda: self._read(pod), name=name), name=name)

    def forget(self, uid: str) -> None:
        """The pod has gone."""
        if (reading := self._reading.pop(uid, None)) is not None:
            reading.cancel()
            self._tried.pop(uid).set()
        self._found.pop(uid, None)

    def is_tried(self, uid: str) -> bool:
        """Whether `tried` returns at once."""
        return uid not in self._tried or self._tried[uid].is_set()

    async def tried(self, uid: str) -> None:
        """Returns when the account was asked for once."""
        if uid in self._tried:
            await self._tried[uid].wait()

    def of_pod(self, pod: Pod, tokens: Sequence[PodToken]) -> PullAccount | None:
        """The account with its tokens; None for a pod whose account nobody asks about."""
        requests = self.requests(pod)
        if not requests:
            return None
        account = PullAccount(namespace=pod.metadata.namespace, name=_name(pod), problem=UNREAD)
        account = self._found.get(pod.metadata.uid, account)
        mine = tuple((each.wish.audience, each.token) for each in tokens if each.wish in requests and each.token)
        return msgspec.structs.replace(account, tokens=mine)

    def _wanted(self, pod: Pod) -> list[TokenAttributes]:
        """Wishes of the providers of its images. Without such providers nothing is imported."""
        if not self._providers:
            return []
        from workers.images.provider_answers import is_for
        from workers.kubecontainer.image_reference import parse_image_reference

        images = {found.container.image for found in every_container(pod.spec)}
        images |= {volume.image.reference for volume in pod.spec.volumes if volume.image is not None}
        references = []
        for image in sorted(images):
            try:
                references.append(parse_image_reference(image))
            except ValueError:
                continue  # its container says so
        return [
            provider.tokens
            for provider in self._providers
            if provider.tokens is not None and any(is_for(provider, reference) for reference in references)
        ]

    async def _read(self, pod: Pod) -> None:
        """Until it is there."""
        uid, attempts = pod.metadata.uid, Attempts()
        while True:
            found = await self._ask(pod)
            before, self._found[uid] = self._found.get(uid), found
            self._tried[uid].set()
            if found != before:
                self._changed(uid)
            if not found.problem:
                return
            await asyncio.sleep(attempts.pause_s)
            attempts = attempts.failed()

    async def _ask(self, pod: Pod) -> PullAccount:
        namespace, name = pod.metadata.namespace, _name(pod)
        try:
            meta = _ACCOUNT.decode(await self._client.request("GET", SERVICE_ACCOUNTS.path(namespace, name))).metadata
            check_name(meta.name, name)
        except (ClusterError, ValueError) as error:
            words = safe_line(str(error))
            log.warning("%s/%s: its service account %s: %s", namespace, pod.metadata.name, name, words)
            return PullAccount(namespace=namespace, name=name, problem=words)
        asked = {key for it in self._wanted(pod) for key in (*it.required_annotations, *it.optional_annotations)}
        kept = tuple(sorted((key, value) for key, value in meta.annotations.items() if key in asked))
        return PullAccount(namespace=namespace, name=name, uid=meta.uid, annotations=kept)


def _name(pod: Pod) -> str:
    return pod.spec.service_account_name or "default"
