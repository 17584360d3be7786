"""An image that contains one static binary and nothing else: no shell, no libraries, no /etc."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import pytest

from tests.podman_service import COMMAND_DEADLINE_S, podman

IMAGE: Final = "localhost/rootlet-one-binary:latest"
BINARY: Final = "/app"
WAIT: Final = (BINARY, "wait")
"""Runs until SIGTERM."""

SOURCE: Final = r"""
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void leave(int signum) { (void)signum; _exit(0); }

/* app wait | app exit CODE | app say CODE WORD | app flood BYTES */
int main(int argc, char **argv) {
    const char *verb = argc > 1 ? argv[1] : "";
    if (!strcmp(verb, "exit")) return atoi(argv[2]);
    if (!strcmp(verb, "say")) {
        (void)!write(1, argv[3], strlen(argv[3]));
        (void)!write(2, "!", 1);
        return atoi(argv[2]);
    }
    if (!strcmp(verb, "flood")) {
        for (long left = atol(argv[2]); left > 0; left--) (void)!write(1, "x", 1);
        return 0;
    }
    if (!strcmp(verb, "wait")) {
        signal(SIGTERM, leave);
        for (;;) pause();
    }
    return 99;
}
"""


def ensure_one_binary_image(directory: Path) -> str:
    """Its name; built unless it is there. Skips where there is no C compiler."""
    if subprocess.run(["podman", "image", "exists", IMAGE], timeout=COMMAND_DEADLINE_S, check=False).returncode == 0:
        return IMAGE
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler for an image with one static binary")
    source, binary, archive = directory / "app.c", directory / "app", directory / "image.tar"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-static", "-Os", "-o", str(binary), str(source)], timeout=COMMAND_DEADLINE_S, check=True)
    with tarfile.open(archive, "w") as tar:
        tar.add(binary, BINARY.lstrip("/"))
    podman("import", "--quiet", str(archive), IMAGE)
    return IMAGE
