"""Logins of the node's credential providers: each that is for an image is run, unless it has answered already.

Mirrors pkg/credentialprovider/plugin: NewExternalCredentialProviderDockerKeyring and what it asks. A provider that
fails is told in the log, and the image is pulled without it. Providers are asked beside one another, upstream one
after the other; the order of their logins is that of the configuration in both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from ipc.host.clock import Clock
from ipc.host.process.plugin_process import PluginProcessError, ask_program
from ipc.k8s.podobjects.registry_login import PullAccount, RegistryLogin
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.wire.credential_provider import CredentialProvider
from workers.images.credentials import logins_for
from workers.images.provider_answers import (
    Asker,
    KeptAnswers,
    Logins,
    NodeLogin,
    ProviderError,
    asker_of,
    is_for,
    keys_of,
    read_answer,
    request,
)
from workers.kubecontainer.image_reference import ImageReference

DEADLINE_S: Final = 60.0
"""How long a provider may run, in seconds, as upstream."""
MAX_OUTPUT_BYTES: Final = 1 << 20
"""Largest answer that is read."""

log = logging.getLogger(__name__)


class ProviderLogins:
    """Asks the providers of this node. For one event loop."""

    def __init__(self, providers: Sequence[CredentialProvider], clock: Clock) -> None:
        self._tasks = BackgroundTasks()
        self._providers = [_Asked(provider, clock, self._tasks) for provider in providers]

    async def find(self, image: ImageReference, account: PullAccount | None = None) -> tuple[NodeLogin, ...]:
        """Logins that they have for that image, for a pod of that account, in the order in which they are tried."""
        asked = [(provider, _asker(provider.provider, image, account)) for provider in self._providers]
        runs = [(provider, asker) for provider, asker in asked if asker is not None]
        answers = await asyncio.gather(*(provider.logins(image, asker) for provider, asker in runs))
        owners: dict[RegistryLogin, PullAccount | None] = {}
        for (_, asker), answer in zip(runs, answers, strict=True):
            # A login that one provider gives to all is for all, also where another gives it to the account.
            owners |= {each.login: asker.account if owners.get(each.login, asker.account) else None for each in answer}
        found = logins_for(image, (each for answer in answers for each in answer))
        return tuple(NodeLogin(login, owners[login]) for login in found)

    async def close(self) -> None:
        """End the providers that run."""
        await self._tasks.close()


class _Asked:
    """One provider, its answers, and the images that it is asked for now."""

    def __init__(self, provider: CredentialProvider, clock: Clock, tasks: BackgroundTasks) -> None:
        self.provider = provider
        self._clock = clock
        self._tasks = tasks
        self._kept = KeptAnswers()
        self._asking: dict[tuple[str, str], asyncio.Task[Logins]] = {}

    async def logins(self, image: ImageReference, asker: Asker) -> Logins:
        """Logins by what they are for. One run answers all who ask for the same image meanwhile, and goes on without
        them: its answer is kept."""
        found = self._kept.find(image, self._clock.now().mono, asker)
        if found is not None:
            return found
        name = keys_of(image)[0]
        run = name, asker.run_key
        if run not in self._asking:
            self._asking[run] = self._tasks.spawn(self._ask(image, run, asker), name=f"credential provider for {name}")
        return await asyncio.shield(self._asking[run])

    async def _ask(self, image: ImageReference, run: tuple[str, str], asker: Asker) -> Logins:
        """Run the provider; no logins when it has failed."""
        provider = self.provider
        try:
            output = await ask_program(
                (provider.program, *provider.args),
                dict(provider.env),
                request(provider, image, asker),
                deadline_s=DEADLINE_S,
                max_bytes=MAX_OUTPUT_BYTES,
            )
            answer = read_answer(provider, image, output, asker)
        except (PluginProcessError, ProviderError) as error:
            log.warning("credential provider %s gave no logins for %s: %s", provider.name, run[0], error)
            return ()
        finally:
            del self._asking[run]
        self._kept.keep(answer, self._clock.now().mono, asker)
        return answer.logins


def _asker(provider: CredentialProvider, image: ImageReference, account: PullAccount | None) -> Asker | None:
    """For whom the provider is asked; None when it is not."""
    if not is_for(provider, image):
        return None
    try:
        return asker_of(provider, account)
    except ProviderError as error:
        log.warning("credential provider %s gave no logins for %s: %s", provider.name, keys_of(image)[0], error)
        return None
