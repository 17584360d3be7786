"""Entry point of the command `rootlet`. It looks after Ctrl-C as soon as it is imported: the script that an installer
makes has more to do before it calls `main`."""

from __future__ import annotations

from ipc.host.process import interrupts

interrupts.end_the_process()


def main() -> int:
    """Run the command; its exit code, where it returns at all."""
    from ipc.host.process import installation

    return installation.main()
