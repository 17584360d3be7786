"""The desired pods: sources read, merged in one order, checkpointed. All file access happens in threads.

Everything that changes the set passes one queue, so that the sync loop sees updates in the order in which they were
merged (upstream: one writer of the updates channel, pkg/kubelet/config/config.go).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from ipc.host.clock import Clock
from ipc.host.state_file import StateUnusable
from ipc.host.text.safe_text import safe_line, safe_text
from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.errors import FieldErrors
from ipc.k8s.api.support.warnings import field_warnings
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.patching.values import PatchError
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from ipc.link.eventloop.batch import BatchGate
from ipc.link.eventloop.tasks import BackgroundTasks, restarted, to_the_end
from ipc.link.messages.api_server import Reply
from supervisor.config.settings import Settings
from supervisor.config.shown_settings import shown_url
from supervisor.protocol.events import KillPod
from supervisor.protocol.manifests import (
    APPLY_SOURCE,
    FILE_SOURCE,
    HTTP_SOURCE,
    DesiredObject,
    DesiredPod,
    ExpectedObject,
    ManifestError,
    ManifestErrorKind,
    SourceSnapshot,
)
from supervisor.protocol.source_updates import PodOperation, PodUpdate, Update
from supervisor.sources import checkpoint
from supervisor.sources.api_source import ApiSource
from supervisor.sources.applied import AppliedStore, ApplyOptions, ApplyResult, Key, WarningsOf
from supervisor.sources.applied_changes import shown
from supervisor.sources.directory import ManifestReader
from supervisor.sources.expected_objects import load_names, save_names
from supervisor.sources.http_source import HttpSource
from supervisor.sources.objects.identity import Origin
from supervisor.sources.objects.merge import PodConfig
from supervisor.sources.secret_places import carry_over, secret_places
from supervisor.sources.source_place import FILE as PLACE_FILE
from supervisor.sources.source_place import PlaceRecord
from supervisor.sources.watch import watch_manifests
from supervisor.state.memory_directory import NotMemory, make_memory_directory

log = logging.getLogger(__name__)

CHECKPOINT_FILE = "desired.json"
NAMES_FILE = "objects.json"
APPLIED_DIRECTORY = "applied"
POSTED_FILE = "posted.manifest"
_AS_STATED = ApplyOptions()
_CODES = {ManifestErrorKind.EXISTS: 409, ManifestErrorKind.ABSENT: 404}
MAX_PATCH_TRIES = 5
"""Tries of one patch (apiserver endpoints/handlers/patch.go, maxRetryWhenPatchConflicts)."""
MAX_PATCH_ERROR_BYTES = 4096
"""Longest text about a patch that does not fit, in UTF-8: it may repeat parts of the patch."""
_ABSENT = "absent"
"""Key of what was told of a directory that is not there."""
MAX_TOLD_SKIPPED = 1_000
"""After so many names in a life of the agent nobody is told of more."""
_UNDONE = frozenset({PodOperation.UPDATE, PodOperation.DELETE, PodOperation.REMOVE})
LONGEST_SAVE_S = 5.0
"""How long an edit or a deletion waits for its checkpoint, in seconds."""
SHORTEST_GRACE_S = 1
"""kubectl sends 1 for ``--grace-period=0`` too."""


class Change(msgspec.Struct, frozen=True):
    """Updates and errors of one merge."""

    updates: tuple[Update, ...] = ()
    errors: tuple[ManifestError, ...] = ()
    """Errors that were not reported before."""
    kill: KillPod | None = None
    skipped: tuple[str, ...] = ()
    """Files beside the manifests that are not read, and that were not reported before."""
    lists_cluster: bool = False
    """With these updates all pods of the cluster's list are known."""
    lost_secrets: tuple[str, ...] = ()
    """Applied Secrets that are gone since the agent ran last: ``<namespace>/<name>``."""
    save: int = 0
    """Number of the checkpoint that has it, if that comes first: what replaces or ends a pod which the next agent would
    restore."""


class SourceManager:
    """Owns the sources and the merged set."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        api: ApiSource | None = None,
        *,
        warnings_of: WarningsOf = field_warnings,
    ) -> None:
        """``api``: what a cluster wants of this node; None when it is no node of one. ``warnings_of`` is called in any
        thread."""

        def origin(source: str) -> Origin:
            return Origin(instance=settings.instance_name, node_name=settings.node_name, source=source)

        self._settings = settings
        self._clock = clock
        self._api = api
        sources = (FILE_SOURCE, APPLY_SOURCE, HTTP_SOURCE)
        self._config = PodConfig((*sources, API_SOURCE) if api is not None else sources)
        self._reader = ManifestReader(
            settings.static_pod_path, origin(FILE_SOURCE), settings.max_manifest_bytes, apart=True
        )
        self._place = PlaceRecord(settings.static_pod_path, settings.state_dir / PLACE_FILE)
        self._look_again = asyncio.Event()
        """Set for a look at the manifests that nothing else asks for."""
        self._secrets, self._secrets_elsewhere = secret_places(settings)
        self._applied = AppliedStore(
            settings.state_dir / APPLIED_DIRECTORY,
            origin(APPLY_SOURCE),
            settings.max_manifest_bytes,
            secrets=self._secrets,
            warnings_of=warnings_of,
        )
        self._http = HttpSource(settings.state_dir / POSTED_FILE, origin(HTTP_SOURCE), settings.max_manifest_bytes)
        self._checkpoint = settings.state_dir / CHECKPOINT_FILE
        self._names_file = settings.state_dir / NAMES_FILE
        self._is_past_known = True
        """Whether the checkpoint could be read: else nobody knows of what a source has stated before."""
        self._saved_names: tuple[ExpectedObject, ...] = ()
        self._changes: asyncio.Queue[Change] = asyncio.Queue()
        self._applying = asyncio.Lock()
        self._posting = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._held_back: dict[str, Pod] = {}
        """UID -> what a pod stays although its manifest says something else: the edit was not admitted."""
        self._saves_asked = self._saves_begun = 0
        """How many times a checkpoint was asked for, and how many of these the newest one answers."""
        self._is_save_due = False
        """A checkpoint of the cluster's pods waits for the end of a burst of them."""
        self._is_unsaved = False
        """Something was held back since the checkpoint was written."""
        self._is_undone = False
        """The checkpoint has what was replaced or ended since: the next one has to outlive a power cut. One with more
        pods need not, whose manifests are where they were read."""
        self._reported: dict[str, frozenset[ManifestError]] = {}
        self._reported_skipped: set[str] = set()
        self._tasks = BackgroundTasks()

    @property
    def all_ready(self) -> bool:
        """Every source was read completely once."""
        return self._config.all_ready()

    @property
    def own_ready(self) -> bool:
        """Every source of this host was read, or told why not: a file system that is not mounted may stay so for hours,
        and a cluster out of reach."""
        return self._config.looked_at() >= {FILE_SOURCE, APPLY_SOURCE, HTTP_SOURCE}

    def restore(self) -> tuple[Update, ...]:
        """The last accepted set, so that running pods stay supervised while a source cannot be read.

        Without a usable checkpoint they wait for their source: until it was read nothing is deleted either way.
        """
        try:
            desired = checkpoint.load(self._checkpoint) or ()
        except StateUnusable as error:
            log.error("%s", error)
            desired, self._is_past_known = (), False
        self._applied.expect(item.pod for item in desired if item.source == APPLY_SOURCE)
        expected = self._load_names()
        stated = [*((item.source, item.file) for item in desired), *((item.source, item.file) for item in expected)]
        self._reader.expect(file for source, file in stated if source == FILE_SOURCE)
        return self._config.restore(desired, expected)

    def _load_names(self) -> tuple[ExpectedObject, ...]:
        self._saved_names = load_names(self._names_file)
        return self._saved_names

    def forget(self) -> None:
        """Every pod was taken down on request: nothing is left that the next start would have to restore."""
        self._is_unsaved = False
        try:
            self._checkpoint.unlink(missing_ok=True)
        except OSError as error:
            log.error("checkpoint not removed: %s", error)

    async def hold_back(self, pod: Pod) -> None:
        """Keep the running version of a pod whose edit was refused: it is the one that the next start has to
        restore."""
        self._held_back[pod.metadata.uid] = pod
        self._is_unsaved = True
        await self._save()

    async def close(self) -> None:
        """Write down what was held back in the last moment: the checkpoint may have the edit that was refused."""
        if self._is_unsaved:
            await self._save()

    async def watch(self) -> AsyncIterator[Change]:
        """Every change from now on. Ends only by being closed."""
        for source, read in self._readers().items():
            self._tasks.spawn(restarted(read, name=f"source {source}"), name=f"source {source}")
        try:
            while True:
                change = await self._changes.get()
                if change.save:
                    await self._saved(change.save)
                yield change
        finally:
            self._tasks.cancel()

    def _readers(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """By source. An unexpected error in one is said, and it is read anew; no other source notices."""
        own = {APPLY_SOURCE: self._read_applied, FILE_SOURCE: self._follow_files, HTTP_SOURCE: self._read_http}
        return own if self._api is None else {**own, API_SOURCE: functools.partial(self._follow_cluster, self._api)}

    async def post(self, body: bytes) -> Reply:
        """``POST /containers``: the pods of the body become the set of the source ``http``, or nothing changes."""
        if self._settings.static_pod_url:
            name = shown_url(self._settings.static_pod_url)
            return Reply(request_id=0, code=409, reason="Conflict", message=f"staticPodURL {name} states that set")
        async with self._posting:
            try:
                snapshot = await asyncio.to_thread(self._http.post, body, self._config.desired_elsewhere(HTTP_SOURCE))
            except OSError as error:
                return Reply(request_id=0, code=500, reason="InternalError", message=f"cannot store: {error}")
            if snapshot.errors:
                words = "; ".join(map(str, snapshot.errors))
                return Reply(request_id=0, code=400, reason="BadRequest", message=words)
            self._merge(snapshot)
            await self._save()
        return Reply(request_id=0, code=200, results=tuple(item.title for item in snapshot.pods))

    async def _read_http(self) -> None:
        """Read the posted set, once; or that of the URL, for ever."""
        settings = self._settings
        if not settings.static_pod_url:
            async with self._posting:
                self._merge(await asyncio.to_thread(self._http.read))
            return
        from supervisor.sources.url_reader import UrlReader  # with an HTTP client, for the few who need it

        reader = UrlReader(
            self._http, settings.static_pod_url, settings.static_pod_url_header, settings.max_manifest_bytes
        )
        while True:
            found = await reader.read()
            if isinstance(found, bytes):
                found = await asyncio.to_thread(reader.snapshot, found)
            if found is not None:
                self._merge(found)
                await self._save()
            await asyncio.sleep(settings.http_check_frequency_s)

    def accept_manifests(self) -> str:
        """Take the manifests as they are now, whatever they were (`supervisor.sources.source_place`). Says what comes
        of it, for people."""
        path = safe_line(str(self._settings.static_pod_path))
        if not self._place.accept():
            return f"{path} is in no doubt: nothing to accept"
        self._look_again.set()
        log.warning("%s is accepted as it is now, on request", path)
        return f"{path} is accepted as it is now"

    async def apply(self, file: str, body: bytes, options: ApplyOptions = _AS_STATED, *, show: bool = False) -> Reply:
        """`rootlet apply`, `create` and `replace`: all objects of the body or none."""
        async with self._applying:
            elsewhere = self._config.desired_elsewhere(APPLY_SOURCE)
            try:
                result = await asyncio.to_thread(self._applied.apply, file, body, elsewhere, options)
            except OSError as error:
                return Reply(request_id=0, code=500, reason="InternalError", message=f"cannot store: {error}")
            if result.errors:
                return _not_applied(file, result.errors)
            if not options.dry_run:
                await self._applied_anew()
        objects = await asyncio.to_thread(shown, result.values) if show else ""
        return Reply(request_id=0, code=200, results=result.lines, warnings=result.warnings, objects=objects)

    async def patch(self, key: Key, kind: str, patch_type: str, body: bytes, *, dry_run: bool, values: bool) -> Reply:
        """`rootlet patch`, and all that changes one object: only what was applied."""
        named = f'{key.kind.plural} "{key.name}"' if isinstance(key, ObjectKey) else f'pods "{key[1]}"'
        if refusal := self._not_ours(self._holder(key), named, "change"):
            return refusal
        try:
            result = await self._patched(key, patch_type, body, dry_run=dry_run)
        except OSError as error:
            return Reply(request_id=0, code=500, reason="InternalError", message=f"cannot store: {error}")
        except PatchError as error:
            words = safe_text(f"{named}: {error}", MAX_PATCH_ERROR_BYTES)
            return Reply(request_id=0, code=400, reason="BadRequest", message=words)
        except FieldErrors as found:
            return _invalid(kind, named, (str(error) for error in found.errors))
        if isinstance(result, Reply):
            return msgspec.structs.replace(result, message=f"{named} {result.message}")
        if result.errors:
            return _invalid(kind, named, (f"{error.field}: {error.message}" for error in result.errors))
        objects = await asyncio.to_thread(shown, result.values, with_secrets=values)
        return Reply(request_id=0, code=200, results=result.lines, warnings=result.warnings, objects=objects)

    async def _patched(self, key: Key, patch_type: str, body: bytes, *, dry_run: bool) -> ApplyResult | Reply:
        """An object is patched while others are changed, and again if it was changed itself meanwhile (apiserver
        endpoints/handlers/patch.go): a large one keeps nobody waiting. Raises what the store raises."""
        for _ in range(MAX_PATCH_TRIES):
            async with self._applying:
                present = await asyncio.to_thread(self._applied.find, key)
            if present is None:
                return Reply(request_id=0, code=404, reason="NotFound", message="not found")
            value = await asyncio.to_thread(self._applied.changed, present, patch_type, body)
            async with self._applying:
                result = await asyncio.to_thread(self._applied.replace, present, value, dry_run=dry_run)
                if result is not None:
                    if not (result.errors or dry_run):
                        await self._applied_anew()
                    return result
        words = "was changed while it was patched; apply the patch to the latest version and try again"
        return Reply(request_id=0, code=409, reason="Conflict", message=words)

    async def _applied_anew(self) -> None:
        self._merge(await asyncio.to_thread(self._applied.read))
        await self._save()

    def restart(self, namespace: str, name: str, grace_period_s: int | None) -> Reply:
        """`rootlet restart pod`: it ends as if its source had dropped it, and begins anew as the source states it. What
        is wanted does not change meanwhile, so nothing is lost with the agent."""
        holder = self._config.holder((namespace, name))
        if holder is None:
            return Reply(request_id=0, code=404, reason="NotFound", message=f'pods "{name}" not found')
        if not self.all_ready:
            text = "the agent has just started and has not read every source yet"
            return Reply(request_id=0, code=503, reason="ServiceUnavailable", message=text)
        metadata = msgspec.structs.replace(holder.pod.metadata, deletion_grace_period_seconds=grace_period_s)
        going = msgspec.structs.replace(holder.pod, metadata=metadata)
        updates = tuple(
            PodUpdate(op=op, source=holder.source, pods=(pod,))
            for op, pod in ((PodOperation.REMOVE, going), (PodOperation.ADD, holder.pod))
        )
        self._changes.put_nowait(Change(updates))
        return Reply(request_id=0, code=202, results=(f"pod/{name} restarted",))

    def _holder(self, key: Key) -> DesiredPod | DesiredObject | None:
        return self._config.objects().get(key) if isinstance(key, ObjectKey) else self._config.holder(key)

    @staticmethod
    def _not_ours(holder: DesiredPod | DesiredObject | None, named: str, act: str) -> Reply | None:
        """The refusal of a change of what was not applied."""
        if holder is None:
            return Reply(request_id=0, code=404, reason="NotFound", message=f"{named} not found")
        if holder.source == APPLY_SOURCE:
            return None
        text = f"{named} comes from the manifest {holder.file} (source {holder.source}): {act} it there"
        return Reply(request_id=0, code=403, reason="Forbidden", message=text)

    async def delete(self, namespace: str, name: str, grace_period_s: int | None, *, going_down: bool) -> Reply:
        """`rootlet delete`: only what was applied; a manifest's pod goes with its manifest.

        ``going_down``: a pod of that name is on its way out already. Then a deletion may only make it go sooner.
        """
        holder = self._config.holder((namespace, name))
        if holder is None and not going_down:
            return Reply(request_id=0, code=404, reason="NotFound", message=f'pods "{name}" not found')
        if holder is not None and (refusal := self._not_ours(holder, f'pods "{name}"', "remove")):
            return refusal
        kill = None
        if grace_period_s is not None:
            kill = KillPod(namespace, name, max(grace_period_s, SHORTEST_GRACE_S))
        return await self._forget_applied((namespace, name), f'pod "{name}"', kill)

    async def delete_object(self, key: ObjectKey) -> Reply:
        """`rootlet delete configmap` and `secret`: only what was applied, as for pods."""
        holder, named = self._config.objects().get(key), f'{key.kind.plural} "{key.name}"'
        if refusal := self._not_ours(holder, named, "remove"):
            return refusal
        return await self._forget_applied(key, f'{key.kind.lower()} "{key.name}"')

    async def _forget_applied(self, key: Key, named: str, kill: KillPod | None = None) -> Reply:
        async with self._applying:
            try:
                snapshot = await asyncio.to_thread(self._delete_applied, key)
            except OSError as error:
                return Reply(request_id=0, code=500, reason="InternalError", message=f"cannot forget: {error}")
            self._merge(snapshot, kill)
        await self._save()  # beside the next deletion, so that one checkpoint is that of several
        return Reply(request_id=0, code=200, results=(f"{named} deleted",))

    def _delete_applied(self, key: Key) -> SourceSnapshot:
        """The objects that are left. Raises OSError."""
        self._applied.delete(key)
        return self._applied.read()

    async def keep_files(self, *, anew: bool) -> tuple[Path, ...]:
        """Write again what has gone away of the applied objects and of the posted set, and tell its paths; ``anew``:
        the checkpoint, the names of objects and the identity of the manifests, too. Raises OSError."""
        async with self._applying:
            if APPLY_SOURCE in self._config.seen_sources() and await asyncio.to_thread(self._applied.has_gaps):
                self._merge(await asyncio.to_thread(self._applied.read))
            found = self._applied.take_written_again()
        async with self._posting:
            found += await asyncio.to_thread(self._http.keep)
        if anew:
            self._saved_names = ()
            self._look_again.set()
            await self._save()
        return found

    async def _read_applied(self) -> None:
        try:
            await asyncio.to_thread(make_memory_directory, self._settings.memory_dir)
        except (NotMemory, OSError) as error:
            log.warning("no memory for the content of Secrets: %s; set memoryDir", error)
        async with self._applying:
            snapshot = await asyncio.to_thread(self._moved_and_read)
            if lost := lost_secrets(self._saved_names, snapshot):
                self._changes.put_nowait(Change(lost_secrets=lost))
            self._merge(snapshot)

    def _moved_and_read(self) -> SourceSnapshot:
        carry_over(self._secrets_elsewhere, self._secrets)
        return self._applied.read()

    async def _follow_files(self) -> None:
        period_s = self._settings.file_check_frequency_s
        snapshots = watch_manifests(self._reader, period_s, self._place, self._look_again)
        async with contextlib.aclosing(snapshots):
            async for snapshot in snapshots:
                absent = snapshot.absent and self._is_past_known
                self._merge(msgspec.structs.replace(snapshot, absent=absent))
                await self._save(durable=False)

    async def _follow_cluster(self, api: ApiSource) -> None:
        """Pods begin before they are in the checkpoint: a burst of them is merged in parts, and saved when the last one
        has come."""
        burst = BatchGate()
        while True:
            snapshot = await api.changed()
            burst.came()
            self._merge(snapshot, lists_cluster=api.take_listed())
            if not self._is_save_due:  # else that one will have this, too
                self._is_save_due = True
                self._tasks.spawn(self._save_after(burst), name="checkpoint of the cluster's pods")

    async def _save_after(self, burst: BatchGate) -> None:
        await burst.over()
        self._is_save_due = False
        await self._save()

    def _merge(self, snapshot: SourceSnapshot, kill: KillPod | None = None, *, lists_cluster: bool = False) -> None:
        if snapshot.absent and self._config.had_nothing(snapshot.source):
            # As upstream, where it counts as read: nobody has to make a directory that is for later.
            if self._news(_ABSENT, snapshot.errors):
                log.info("%s is not there yet, and has no manifests", self._settings.static_pod_path)
            snapshot = msgspec.structs.replace(snapshot, errors=())
        updates = self._config.merge(snapshot, self._clock.now())
        for pod in (pod for update in updates if isinstance(update, PodUpdate) for pod in update.pods):
            self._held_back.pop(pod.metadata.uid, None)
        errors = self._news(snapshot.source, snapshot.errors) + self._news("", self._config.conflicts())
        skipped = tuple(sorted(snapshot.skipped - self._reported_skipped))[
            : MAX_TOLD_SKIPPED - len(self._reported_skipped)
        ]
        self._reported_skipped.update(skipped)
        undone = any(map(_undoes_checkpoint, updates))
        self._is_undone |= undone
        save = self._ask_for_save() if undone else 0
        self._changes.put_nowait(Change(updates, errors, kill, skipped, lists_cluster, save=save))

    def _news(self, source: str, errors: Iterable[ManifestError]) -> tuple[ManifestError, ...]:
        before = self._reported.get(source, frozenset())
        self._reported[source] = frozenset(errors)
        return tuple(error for error in errors if error not in before)

    def _effective(self) -> tuple[DesiredPod, ...]:
        """Desired pods, as far as their edits were admitted."""
        held = self._held_back
        return tuple(
            msgspec.structs.replace(item, pod=held.get(item.pod.metadata.uid, item.pod))
            for item in self._config.desired()
        )

    def _ask_for_save(self) -> int:
        """The number of a checkpoint of what is desired now."""
        self._saves_asked += 1
        return self._saves_asked

    async def _saved(self, asked: int) -> None:
        """Return when the checkpoint of that number is written, or after `LONGEST_SAVE_S`: a disk that hangs costs the
        checkpoint only."""
        save = self._tasks.spawn(self._save(asked), name="checkpoint of what is replaced")
        await asyncio.wait([save], timeout=LONGEST_SAVE_S)

    async def _save(self, asked: int | None = None, *, durable: bool = True) -> None:
        """A checkpoint that cannot be written costs only what it is for: say so and go on. Not ``durable``: unless it
        replaces or ends a pod, the one before it will do after a power cut.

        One at a time, each of what is desired when its turn comes: an older set never replaces a newer one. So who is
        cancelled waits for the thread, too. Whoever has waited for a turn while another's began is in that one's set.
        """
        asked = self._ask_for_save() if asked is None else asked
        async with self._saving:
            if asked <= self._saves_begun:
                return
            self._saves_begun = self._saves_asked
            self._is_unsaved = False
            lasts, self._is_undone = durable or self._is_undone, False
            try:
                await to_the_end(asyncio.to_thread(self._write, self._effective(), self._config.names(), lasts))
            except OSError as error:
                self._is_undone |= lasts
                log.error("checkpoint not written: %s", error)

    def _write(self, desired: tuple[DesiredPod, ...], names: tuple[ExpectedObject, ...], durable: bool) -> None:
        """Names change less often than pods. Raises OSError."""
        if names != self._saved_names:
            save_names(self._names_file, names)
            self._saved_names = names
        checkpoint.save(self._checkpoint, desired, durable=durable)


def _undoes_checkpoint(update: Update) -> bool:
    """Whether an agent that restores what was desired before would undo what is done for the update."""
    return isinstance(update, PodUpdate) and update.op in _UNDONE and bool(update.pods)


def lost_secrets(expected: Iterable[ExpectedObject], snapshot: SourceSnapshot) -> tuple[str, ...]:
    """Secrets that were applied and are not there any more, though all that is there was read. Pure."""
    if not snapshot.complete:
        return ()
    there, held = {item.key for item in snapshot.objects}, snapshot.held_files()
    return tuple(
        f"{each.key.namespace}/{each.key.name}"
        for each in expected
        if (each.source, each.key.kind) == (snapshot.source, ObjectKind.SECRET)
        and each.key not in there
        and each.file not in held
    )


def _not_applied(file: str, errors: Sequence[ManifestError]) -> Reply:
    """Every error of a manifest in a line of its own, and advice on how to mend it."""
    kinds = {error.kind for error in errors}
    code = next((code for kind, code in _CODES.items() if kinds == {kind}), 422)
    numbers = sorted({error.document for error in errors if error.document})
    wrong = f"document {', '.join(map(str, numbers))}" if numbers else "it"
    what = "the input" if file == "-" else file
    advice = f"nothing of {what} was applied: mend {wrong} or take it out, and apply again"
    reason = str(next(iter(kinds))) if code != 422 else "Invalid"
    return Reply(request_id=0, code=code, reason=reason, message="\n".join((*map(str, errors), advice)))


def _invalid(kind: str, named: str, errors: Iterable[str]) -> Reply:
    """As an API server says it (apimachinery pkg/api/errors, NewInvalid)."""
    reported = tuple(errors)
    words = reported[0] if len(reported) == 1 else f"[{', '.join(reported)}]"
    quoted = named.partition(" ")[2]
    message = safe_text(f"{kind} {quoted} is invalid: {words}")
    return Reply(request_id=0, code=422, reason="Invalid", message=message)
