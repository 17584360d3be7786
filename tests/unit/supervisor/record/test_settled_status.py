"""A status that follows again from the same is not generated again, and one that may follow otherwise is."""

from __future__ import annotations

from unittest.mock import patch

import msgspec

from ipc.k8s.api.v1.pod import Pod
from supervisor.protocol.events import HostAddressesChanged
from supervisor.record import status_manager
from supervisor.status.generate import generate_pod_status
from tests.support.dialogue import Talk, absent, pod, running


def generated_by(talk: Talk, *, host_ip: str = "10.0.0.1") -> int:
    """How many statuses are generated when the master looks at every pod again."""
    with patch.object(status_manager, "generate_pod_status", wraps=generate_pod_status) as generate:
        talk.say(HostAddressesChanged(ips=(host_ip,)))
    return generate.call_count


def talk_of(wanted: Pod) -> Talk:
    """Talk in which that pod runs, and nothing is new of it."""
    made, uid = Talk(), wanted.metadata.uid
    made.add(wanted)
    made.see(absent(uid))
    made.done(uid, changed=True)
    made.see(running(uid))
    made.done(uid)
    generated_by(made)
    return made


def test_from_the_same_nothing_is_generated() -> None:
    assert generated_by(talk_of(pod("p1"))) == 0


def test_the_date_of_an_observation_is_no_cause() -> None:
    talk = talk_of(pod("p1"))
    talk.see(running("p1"))
    assert generated_by(talk) == 0


def test_another_cause_counts_until_it_is_known_that_its_status_stays() -> None:
    talk = talk_of(pod("p1"))
    assert [generated_by(talk, host_ip="10.0.0.2") for _ in range(3)] == [1, 1, 0]
    assert talk.told["p1"].status.host_ip == "10.0.0.2"


def test_a_deadline_is_looked_at_every_time() -> None:
    wanted = pod("p1")
    limited = msgspec.structs.replace(wanted.spec, active_deadline_seconds=600)
    assert generated_by(talk_of(msgspec.structs.replace(wanted, spec=limited))) == 1
