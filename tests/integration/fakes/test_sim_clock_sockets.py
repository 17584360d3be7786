"""The simulated clock beside real sockets."""

import asyncio
import socket

from tests.fakes.clock import START_MONO, SimClock, simulate


def test_what_is_on_a_socket_comes_before_the_next_timer() -> None:
    async def main() -> float:
        near, far = socket.socketpair()
        for end in (near, far):
            end.setblocking(False)
        loop = asyncio.get_running_loop()
        with near, far:
            for _ in range(10):
                await loop.sock_sendall(near, b"x")
                async with asyncio.timeout(1):
                    assert await loop.sock_recv(far, 1) == b"x"
        return SimClock().now().mono

    assert simulate(main) == START_MONO
