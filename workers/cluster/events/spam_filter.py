"""Limits events of one object and type (client-go tools/record, events_cache.go, EventSourceObjectSpamFilter). Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ipc.k8s.api.v1.event import Event
from workers.kubeclient.rate_limit import TokenBucket

BURST: Final = 25
"""Events of one object and type at once (defaultSpamBurst)."""
QPS: Final = 1.0 / 300.0
"""One more in five minutes (defaultSpamQPS)."""
MAX_BUCKETS: Final = 4096
"""Buckets that are remembered; the longest unseen are forgotten (maxLruCacheEntries)."""

_Key = tuple[str, str, str, str, str]


class SpamFilter:
    """Buckets by object and type of event (getSpamKey): warnings without end hide nothing that is normal. The source is
    always this node, the version of objects always v1."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[_Key, TokenBucket] = OrderedDict()

    def lets_pass(self, event: Event, now: float) -> bool:
        """Whether the event may go. ``now``: monotonic seconds."""
        of = event.involved_object
        key = (of.kind, of.namespace, of.name, of.uid, event.type)
        bucket = self._buckets.pop(key, None) or TokenBucket(QPS, BURST, now)
        self._buckets[key] = bucket
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
        if bucket.take(now) > 0.0:
            bucket.give_back()
            return False
        return True
