"""Numbers of the master's requests for observations, and the one that each pod's newest observation answers. Pure."""

from __future__ import annotations


class RequestNumbers:
    """Numbers by pod, of pods that the master has asked for."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}
        self._answered: dict[str, int] = {}

    def ask(self, uid: str, number: int) -> None:
        """Take the number of the newest request."""
        self._asked[uid] = number

    def answer(self, uid: str, number: int) -> None:
        """Note what the newest observation answers."""
        if uid in self._asked:
            self._answered[uid] = number

    def forget(self, uid: str) -> None:
        self._asked.pop(uid, None)
        self._answered.pop(uid, None)

    def asked(self, uid: str) -> int:
        """Number of the newest request for that pod; 0 when there was none."""
        return self._asked.get(uid, 0)

    def answered(self, uid: str) -> int:
        """Number that the newest observation answers; 0 when it answers none."""
        return self._answered.get(uid, 0)
