"""`rootlet exec` and `rootlet attach` against real containers: streams, exit codes, terminals, ends."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import psutil
import pytest

from tests.e2e.agent import CLI_DEADLINE_S, Agent, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.expected_histories import let_through
from tests.e2e.manifests import container, pod
from tests.e2e.terminal import SIZE, terminal

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

LARGE_BYTES: Final = 100 * 1024 * 1024
MANY: Final = 20
GROWTH_BYTES: Final = 40 * 1024 * 1024
"""Growth that an API server may have while a client reads nothing of 100 MB."""
CTRL_C, CTRL_D = b"\x03", b"\x04"


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent) -> Agent:
    """An agent with one pod of two containers."""
    shared = new_shared_agent()
    shared.start()
    shared.run(pod("web", container(), container("side")))
    return shared


def run(agent: Agent, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """For what is no text."""
    command = agent.command("exec", "-c", "main", *arguments)
    return subprocess.run(command, input=data, capture_output=True, timeout=CLI_DEADLINE_S, check=False)


def api_server(agent: Agent) -> psutil.Process:
    return psutil.Process(agent.processes()["api"])


# --- exec --------------------------------------------------------------------------------------------------------


def test_exit_codes_are_the_commands(agent: Agent) -> None:
    done = agent.cli("exec", "web", "-c", "main", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
    assert (done.code, done.out) == (42, "out\n")
    assert done.err == "err\ncommand terminated with exit code 42\n"
    assert agent.cli("exec", "web", "-c", "main", "--", "true") == (0, "", "")
    assert agent.cli("exec", "web", "-c", "main", "--", "sh", "-c", "kill -9 $$").code == 137


def test_a_command_that_is_not_there(agent: Agent) -> None:
    done = agent.cli("exec", "web", "-c", "main", "--", "nonsense", "-x")
    assert done.code == 127
    words, code = done.err.splitlines()
    assert "nonsense" in words
    assert code == "command terminated with exit code 127"


def test_words_reach_the_command_as_they_are(agent: Agent) -> None:
    words = ["-i", "--", "a b", "", "$HOME", "ü&?=+%"]
    done = agent.cli("exec", "web", "-c", "main", "--", "sh", "-c", 'for w; do echo "<$w>"; done', "sh", *words)
    assert done.out.splitlines() == [f"<{word}>" for word in words]


def test_input_ends_and_output_goes_on(agent: Agent) -> None:
    done = agent.cli("exec", "-i", "pod/web", "-c", "main", "--", "sh", "-c", "cat; echo end >&2", stdin="hello\n")
    assert done == (0, "hello\n", "end\n")


def test_without_i_there_is_no_input(agent: Agent) -> None:
    assert agent.cli("exec", "web", "-c", "main", "--", "cat", stdin="hello\n") == (0, "", "")


def test_an_input_that_was_closed_before(agent: Agent) -> None:
    command = agent.command("exec", "-i", "web", "-c", "main", "--", "cat")
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *command], capture_output=True, timeout=CLI_DEADLINE_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_large_transfers_are_exact_and_none_of_the_masters_work(agent: Agent) -> None:
    data = os.urandom(LARGE_BYTES)
    carrier, before = api_server(agent), cpu_s(api_server(agent))
    master = psutil.Process(agent.process.pid)
    master_before = cpu_s(master)
    done = run(agent, "-i", "web", "--", "cat", data=data)
    spent_s, masters_s = cpu_s(carrier) - before, cpu_s(master) - master_before
    assert done.returncode == 0
    assert masters_s < spent_s / 4, "who carries it needs CPU time for it"
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def test_input_that_nobody_reads_is_no_error(agent: Agent) -> None:
    done = run(agent, "-i", "web", "--", "sh", "-c", "exit 3", data=bytes(LARGE_BYTES // 10))
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr == b"command terminated with exit code 3\n"
    done = run(agent, "-i", "web", "--", "true", data=bytes(LARGE_BYTES // 10))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = run(agent, "-i", "web", "--", "nonsense", data=bytes(LARGE_BYTES // 10))
    assert (done.returncode, len(done.stderr.splitlines())) == (127, 2)


def test_a_slow_reader_holds_the_command_and_not_its_output(agent: Agent) -> None:
    script = f"head -c {LARGE_BYTES} /dev/zero; echo done >&2"
    before = api_server(agent).memory_info().rss
    with subprocess.Popen(
        agent.command("exec", "web", "-c", "main", "--", "sh", "-c", script), stdout=subprocess.PIPE
    ) as command:
        assert command.stdout is not None
        first = command.stdout.read(1)
        agent.until(lambda: api_server(agent).cpu_percent(0.5) < 2, "all buffers are full")
        assert api_server(agent).memory_info().rss - before < GROWTH_BYTES
        assert psutil.Process(command.pid).memory_info().rss < 3 * GROWTH_BYTES
        rest = 0
        while data := command.stdout.read(1 << 20):
            rest += len(data)
    assert len(first) + rest == LARGE_BYTES
    assert command.returncode == 0


def test_many_at_once_leave_nothing(agent: Agent) -> None:
    server = api_server(agent)
    agent.cli("exec", "web", "-c", "main", "--", "true")
    before = server.num_fds(), server.num_threads()

    def one(number: int) -> tuple[int, bytes]:
        done = run(agent, "-i", "web", "--", "sh", "-c", f"cat; exit {number}", data=b"%d" % number)
        return done.returncode, done.stdout

    with ThreadPoolExecutor(MANY) as threads:
        assert list(threads.map(one, range(MANY))) == [(number, b"%d" % number) for number in range(MANY)]
    agent.until(lambda: server.num_fds() <= before[0] and server.num_threads() <= before[1], "nothing is left")


def test_which_container_is_said(agent: Agent) -> None:
    done = agent.cli("exec", "web", "--", "true")
    assert done == (0, "", 'Defaulted container "main" out of: main, side\n')
    assert agent.cli("exec", "-q", "web", "--", "true") == (0, "", "")


def test_what_cannot_be(agent: Agent) -> None:
    none = agent.cli("exec", "nobody", "--", "true")
    assert (none.code, none.err) == (1, 'Error from server (NotFound): pods "nobody" not found\n')
    wrong = agent.cli("exec", "web", "-c", "nobody", "--", "true")
    assert (wrong.code, wrong.err) == (1, "error: container nobody not found in pod web\n")
    empty = agent.cli("exec", "web")
    assert (empty.code, empty.err) == (1, "error: you must specify at least one command for the container\n")
    agent.write(pod("once", container(script="exit 0"), restartPolicy="Never"))
    agent.until(lambda: agent.pods().get("once", {}).get("status", {}).get("phase") == "Succeeded", "it has completed")
    done = agent.cli("exec", "once", "--", "true")
    assert done.code == 1
    assert done.err == "error: cannot exec into a container in a completed pod; current phase is Succeeded\n"
    joined = agent.cli("attach", "once")
    assert joined.err == "error: cannot attach a container in a completed pod; current phase is Succeeded\n"


def test_a_container_that_does_not_run(agent: Agent) -> None:
    agent.write(pod("half", container(), container("gone", "exit 1"), restartPolicy="Never"))
    agent.until(lambda: agent.row("half")[1:2] == ["1/2"], "one of two has ended")
    done = agent.cli("exec", "half", "-c", "gone", "--", "true")
    assert done.code == 1
    assert 'unable to upgrade connection: container not found ("gone")' in done.err


def test_no_terminal_without_one(agent: Agent) -> None:
    done = agent.cli("exec", "-it", "web", "-c", "main", "--", "sh", "-c", "test -t 0 || echo none")
    assert done == (0, "none\n", "Unable to use a TTY - input is not a terminal or the right kind of file\n")


# --- exec in a terminal ------------------------------------------------------------------------------------------


def test_a_terminal_with_its_size(agent: Agent) -> None:
    with terminal(agent.command("exec", "-it", "web", "-c", "main", "--", "sh")) as screen:
        before = screen.modes()
        screen.until(b"# ")
        assert screen.is_raw()
        # Again when it fails: Podman may set the size while it is asked for.
        screen.type(b"until busybox stty size; do sleep 0.1; done\n")
        screen.until(b"%d %d\r\n" % SIZE)
        # By a shell of its own: one that puts each command in the foreground swallows a key in between.
        screen.type(b"sh -c 'while sleep 0.1; do busybox stty size; done'\n")
        screen.until(b"%d %d\r\n" % SIZE)
        screen.resize(50, 132)
        screen.until(b"50 132\r\n")
        screen.type(CTRL_C)
        screen.until(b"# ")
        screen.type(b"echo $TERM; exit 7\n")
        screen.until(b"xterm\r\n")
        assert screen.wait() == 7
        assert screen.modes() == before


def test_keys_go_through_as_they_are(agent: Agent) -> None:
    with terminal(agent.command("exec", "-it", "web", "-c", "main", "--", "sh")) as screen:
        screen.until(b"# ")
        # Said by what is in the foreground then: a shell that is about to put it there swallows the key.
        screen.type(b"sh -c \"echo begin''s; exec sleep 1000\"\n")
        screen.until(b"begins\r\n")
        screen.type(CTRL_C)
        screen.until(b"# ")
        screen.type(b"echo code $?\n")
        screen.until(b"code 130\r\n")
        screen.type(b"busybox stty raw -echo; echo read''y; head -c 9 | busybox hexdump -C; busybox stty sane\n")
        screen.until(b"ready\n")
        screen.type(b"\x1b[A" + CTRL_C + CTRL_D + b"\x7f\x10\x11\xff")
        screen.until(b"1b 5b 41 03 04 7f 10 11  ff")
        screen.type(b"\n")
        screen.until(b"# ")
        screen.type(CTRL_D)
        assert screen.wait() == 0


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_restores_the_terminal(agent: Agent, signum: signal.Signals) -> None:
    with terminal(agent.command("exec", "-it", "web", "-c", "main", "--", "cat")) as screen:
        before = screen.modes()
        agent.until(screen.is_raw, "the terminal is raw")
        screen.type(b"x")
        screen.until(b"x")
        screen.process.send_signal(signum)
        assert screen.wait() == 128 + signum
        assert screen.modes() == before


def test_an_interrupt_without_a_terminal(agent: Agent) -> None:
    with agent.following("exec", "web", "-c", "main", "--", "sh", "-c", "echo there; exec sleep 5") as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "there\n"
        command.send_signal(signal.SIGINT)
        assert command.wait(CLI_DEADLINE_S) == 128 + signal.SIGINT


# --- what ends it early ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("-i",)])
def test_a_client_that_is_killed(agent: Agent, options: tuple[str, ...]) -> None:
    """The client's command goes too, with what that has started, whether it reads its input or not."""
    server = api_server(agent)
    before = server.num_fds()
    script = "sleep 1001 & echo there; exec sleep 1001"
    with subprocess.Popen(
        agent.command("exec", *options, "web", "-c", "main", "--", "sh", "-c", script),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as command:
        try:
            assert command.stdout is not None
            assert command.stdout.readline() == b"there\n"
            agent.until(lambda: len(sleepers()) == 2, "both have become sleep")
        finally:
            command.kill()
    agent.until(lambda: not sleepers(), "the command has ended")
    agent.until(lambda: server.num_fds() <= before, "no descriptor is left")
    assert agent.row("web")[1:2] == ["2/2"]


def test_a_terminal_whose_client_is_killed(agent: Agent) -> None:
    with terminal(agent.command("exec", "-it", "web", "-c", "main", "--", "sh")) as screen:
        screen.until(b"# ")
        screen.type(b"trap '' HUP; echo begin''s; sleep 1001\n")
        screen.until(b"begins\r\n")
        agent.until(lambda: bool(sleepers()), "it runs")
        screen.process.kill()
        screen.wait()
    agent.until(lambda: not sleepers(), "the command has ended")


def sleepers() -> list[psutil.Process]:
    """Processes that the commands here leave running if nobody ends them."""
    return [found for found in psutil.process_iter(["cmdline"]) if found.info["cmdline"] == ["sleep", "1001"]]


def test_a_container_that_ends_takes_its_commands_along(agent: Agent) -> None:
    agent.run(pod("dies", container(script="while [ ! -e /end ]; do sleep 0.1; done; exit 1"), restartPolicy="Never"))
    with agent.following("exec", "dies", "--", "sh", "-c", "echo there; touch /end; sleep 1000") as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "there\n"
        assert command.wait(CLI_DEADLINE_S) == 137


def test_a_pod_that_is_deleted_in_the_middle(agent: Agent) -> None:
    agent.run(pod("leaves"))
    with agent.following("exec", "leaves", "--", "sh", "-c", "echo there; sleep 1000") as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "there\n"
        agent.remove("leaves")
        assert command.wait(CLI_DEADLINE_S) in (1, 137)
    agent.until_gone(["leaves"])


@contextlib.contextmanager
def failing_with(agent: Agent, error: str) -> Iterator[None]:
    """A command runs; what is done in the block makes it fail with that error."""
    command = agent.command("exec", "web", "-c", "main", "--", "sh", "-c", "echo there; sleep 1000")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "there\n"
        yield
        assert running.wait(CLI_DEADLINE_S) == 1
        assert running.stderr.read() == f"error: {error}\n"


def test_the_api_servers_death_is_told(agent: Agent) -> None:
    with failing_with(agent, "lost connection to the agent's API server; the command may go on"):
        agent.kill_and_recover("api")
    assert agent.cli("exec", "web", "-c", "main", "--", "echo", "again").out == "again\n"


def test_a_restart_of_the_api_server_is_told(agent: Agent) -> None:
    with failing_with(agent, "Internal error occurred: the agent's API server stops"):
        assert agent.cli("workers", "restart", "api").code == 0


# --- attach ------------------------------------------------------------------------------------------------------


def test_attach_shows_what_comes_until_the_end(agent: Agent) -> None:
    script = "while [ ! -e /go ]; do echo tick; sleep 0.1; done; echo out; echo err >&2; exit 5"
    agent.run(pod("talks", container(script=script), restartPolicy="Never"))
    with subprocess.Popen(
        agent.command("attach", "talks"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as command:
        assert command.stderr is not None
        assert command.stderr.readline() == "If you don't see a command prompt, try pressing enter.\n"
        assert command.stdout is not None
        assert command.stdout.readline() == "tick\n"
        let_through(agent, "talks", "main")
        out, err = command.communicate(timeout=CLI_DEADLINE_S)
    assert (command.returncode, out.replace("tick\n", ""), err) == (0, "out\n", "err\n")


def test_attach_feeds_a_container_with_an_input(agent: Agent) -> None:
    agent.run(pod("eats", container(script="cat; echo end; sleep 1; exit 5", stdin=True), restartPolicy="Never"))
    done = agent.cli("attach", "-q", "-i", "eats", stdin="hello\n")
    assert done == (0, "hello\nend\n", "")
    agent.until(lambda: agent.row("eats")[2:3] == ["Error"], "it has ended")


@contextlib.contextmanager
def attached(agent: Agent, name: str) -> Iterator[subprocess.Popen[str]]:
    """A client with an input that stays open; it is killed, and says nothing of that."""
    command, pipe = agent.command("attach", "-q", "-i", name), subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as client:
        yield client
        client.kill()


def says_back(client: subprocess.Popen[str], line: str) -> bool:
    assert client.stdin is not None
    assert client.stdout is not None
    print(line, file=client.stdin, flush=True)
    return client.stdout.readline() == f"{line}\n"


@pytest.mark.parametrize("once", [True, False], ids=["stdinOnce", "stdin"])
def test_an_input_ends_with_the_first_client_and_the_next_is_told(agent: Agent, once: bool) -> None:
    """Also with one that is killed. Without stdinOnce it is so because Podman has no choice."""
    name = "eats-once" if once else "eats-more"
    script = "cat; echo end; while [ ! -e /end ]; do sleep 0.1; done"
    agent.run(pod(name, container(script=script, stdin=True, stdinOnce=once)))
    with attached(agent, name) as first:
        assert says_back(first, "hello")
        assert says_back(first, "again")
        assert agent.output(name) == "hello\nagain\n", "it reads on"
    agent.until(lambda: agent.output(name) == "hello\nagain\nend\n", "its input has ended")
    with attached(agent, name) as second:
        assert second.stderr is not None
        told = second.stderr.readline()
    assert told == "warning: the input of container main has ended with a client that was attached before\n"
    assert restart_count(agent.pods()[name]) == 0
    agent.inside(name, "touch /end")
    agent.until(lambda: restart_count(agent.pods()[name]) == 1, "it is restarted")
    agent.until_ready([name])
    with attached(agent, name) as third:
        assert says_back(third, "here")


def test_a_client_that_only_watched_ends_the_input_too(agent: Agent) -> None:
    """conmon knows no difference; Podman finds out that it has gone when it has something to show to it."""
    script = "while true; do echo tick; sleep 0.2; done & cat; touch /end; wait"
    agent.run(pod("watched", container(script=script, stdin=True, stdinOnce=True)))
    with agent.following("attach", "-q", "watched") as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "tick\n"
        assert agent.inside("watched", "ls / | grep -x end || echo none") == "none"
    agent.until(lambda: agent.inside("watched", "ls / | grep -x end || echo none") == "end", "its input has ended")


def test_attach_to_a_terminal_and_again(agent: Agent) -> None:
    agent.run(pod("shell", container(script="exec sh", stdin=True, tty=True)))
    for _ in range(2):
        with terminal(agent.command("attach", "-it", "shell", "--detach-keys", "ctrl-p,ctrl-q")) as screen:
            screen.until(b"try pressing enter.")
            agent.until(screen.is_raw, "the terminal is raw")
            screen.type(b"\nbusybox stty size\n")
            screen.until(b"%d %d\r\n" % SIZE)
            screen.type(b"\x10\x11")
            assert screen.wait() == 0
    with terminal(agent.command("attach", "-it", "shell")) as screen:
        screen.until(b"try pressing enter.")
        agent.until(screen.is_raw, "the terminal is raw")
        screen.type(b"\nexit\n")
        assert screen.wait() == 0
        assert b"Session ended, resume using 'rootlet attach shell -c main -n default -i -t' command" in screen.screen


def test_attach_without_a_terminal_in_the_container(agent: Agent) -> None:
    agent.run(pod("plain", container(script="cat; echo end", stdin=True), restartPolicy="Never"))
    done = agent.cli("attach", "-it", "plain")
    assert (done.code, done.out) == (0, "end\n")
    assert done.err.splitlines()[0] == "error: Unable to use a TTY - container main did not allocate one"
