"""Events as v1 events. Times are RFC 3339 strings."""

from typing import Literal

from ipc.k8s.api.v1.base import ApiStruct, Int32, Time, always
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference


class EventSource(ApiStruct, frozen=True, kw_only=True):
    """Component and host that reported the event."""

    component: str = ""
    host: str = ""


class EventSeries(ApiStruct, frozen=True, kw_only=True):
    """Repetitions."""

    count: Int32 = 0
    last_observed_time: Time | None = None


class Event(ApiStruct, frozen=True, kw_only=True):
    """A v1 Event. `count` and `series.count` count repetitions."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["Event"] = always("Event")
    metadata: ObjectMeta
    involved_object: ObjectReference
    reason: str = ""
    message: str = ""
    source: EventSource = always(EventSource())
    first_timestamp: Time | None = always(None)
    last_timestamp: Time | None = always(None)
    count: Int32 = 0
    type: str = ""
    event_time: Time | None = always(None)
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = always("")
    reporting_instance: str = always("")
