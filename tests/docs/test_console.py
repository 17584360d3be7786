"""How a page's commands are read, run and compared; a page with commands that need no Podman."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs.console import Command, File, Shell, Unseen, perform, plain, rewritten, steps
from tests.docs.pages import ROOT
from tests.docs.typed import as_shown

PAGE = """# A page

```yaml
# words.yaml
word: hello
```

```yaml
no: path
```

```console
$ cut -d ' ' -f 2 words.yaml
hello
$ here=$PWD; cd /
$ echo "made 3s ago"
made 41s ago
```

```sh
never run
```

<!-- run
cat >"$here/unseen" <<END
of several lines
END
-->

```console
$ cd "$here"; cat unseen; ls no-such-file
ls: something else
```
"""


def test_files_and_commands_in_order() -> None:
    assert list(steps(PAGE)) == [
        File("words.yaml", "word: hello\n"),
        Command("cut -d ' ' -f 2 words.yaml", "hello\n"),
        Command("here=$PWD; cd /", ""),
        Command('echo "made 3s ago"', "made 41s ago\n"),
        Unseen('cat >"$here/unseen" <<END\nof several lines\nEND\n'),
        Command('cd "$here"; cat unseen; ls no-such-file', "ls: something else\n"),
    ]


def test_only_outputs_that_differ_for_good_are_renewed(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {**os.environ, "LC_ALL": "C"})
    try:
        done = perform(PAGE, shell, tmp_path)
    finally:
        shell.close()
    renewed = "ls: cannot access 'no-such-file': No such file or directory"
    assert rewritten(PAGE, done) == PAGE.replace("ls: something else", f"of several lines\n{renewed}")


def test_a_command_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.console.COMMAND_DEADLINE_S", 0.2)
    shell = Shell(tmp_path, os.environ)
    try:
        with pytest.raises(TimeoutError, match=r"^echo first; sleep 60: .*first"):
            shell.run("echo first; sleep 60")
    finally:
        shell.close()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("web   1/1   Running   1 (2s ago)    3m4s\n", "web   1/1   Running   1 (11s ago)   9s\n"),
        ("7c702a52d7a0\n", "e604a63518ea\n"),
        ("[::ffff:10.89.0.3]:41214: 200", "[::ffff:10.89.0.7]:3: 200"),
        ("7s (x2 over 8s)", "9s (x11 over 10s)"),
        ("Finished: Mon, 23 Nov 2026 20:04:59 +0000", "Finished: Tue, 24 Nov 2026 07:00:00 +0000"),
        ("web_default(45d3bf1a-3322-842e-ba46-3586add50a9e)", "web_default(e2e44694-ed1f-8169-a2bc-511d3742764d)"),
        (
            "NAME   DEATHS   PID   HEARTBEAT   STEP\nnode   0        71    0.1s ago    waiting\n",
            "NAME   DEATHS   PID      HEARTBEAT   STEP\nnode   0        123456   <none>      looks at default/web\n",
        ),
        ("slot 4 (pid 13694): no heartbeat for 4.3 s", "slot 4 (pid 7): no heartbeat for 10.0 s"),
        ("Forwarding from [::1]:35981 -> 8080", "Forwarding from [::1]:42 -> 8080"),
        ("web   <private>   vm\n", "web   192.168.100.17   vm\n"),
        ("at 2026-11-20T13:21:18Z", "at 2026-11-23T07:00:00.5Z"),
    ],
)
def test_what_differs_from_run_to_run_is_no_difference(one: str, other: str) -> None:
    assert plain(one) == plain(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("web   1/1   Running   0", "web   0/1   Running   0"),
        ("NAME   DEATHS   PID\nnode   0        71\n", "NAME   DEATHS   PID\nnode   1        71\n"),
        ("restarts: 1", "restarts: 2"),
        ("a", ""),
    ],
)
def test_everything_else_is_one(one: str, other: str) -> None:
    assert plain(one) != plain(other)


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("/ # tty\r\n/dev/pts/0\r\n", "/ # tty\n/dev/pts/0\n"),
        ("/ # \r/ # \x1b[Jtty\r\n", "/ # tty\n"),
        ("/ # tt\r/ # tty", "/ # tty"),
        ("longer\rshort", "shortr"),
    ],
)
def test_a_line_that_is_written_anew_stands_once(output: str, shown: str) -> None:
    assert as_shown(output) == shown


def test_what_stands_behind_prompts_is_typed(tmp_path: Path) -> None:
    (tmp_path / "rootlet").write_text("#!/bin/sh\nPS1='/ # ' exec sh -i\n")
    (tmp_path / "rootlet").chmod(0o700)
    capture = "```console\n$ rootlet exec -it web -- sh\n/ # stty size\n24 80\n/ # exit 3\n```\n"
    paths = {"CHECKOUT": str(ROOT), "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shell = Shell(tmp_path, {**os.environ, **paths})
    try:
        done = perform(capture, shell, tmp_path)
    finally:
        shell.close()
    assert rewritten(capture, done) == capture
