"""An image that contains one static binary and nothing else: no shell, no libraries, no /etc."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import pytest

from tests.support.podman_service import COMMAND_DEADLINE_S, podman

BINARY: Final = "/app"
WAIT: Final = (BINARY, "wait")
"""Runs until SIGTERM."""
STUBBORN: Final = (BINARY, "stubborn")
"""Runs until SIGKILL."""
ASK: Final = (BINARY, "ask")
"""With a port: does what a server on the pod's loopback tells it. Its first byte is the exit code, the others are to be
said; the command lasts as long as the server makes it wait."""

SOURCE: Final = r"""
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void leave(int signum) { (void)signum; _exit(0); }

static int ask(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int server = socket(AF_INET, SOCK_STREAM, 0);
    unsigned char code = 1;
    char text[256];
    if (connect(server, (struct sockaddr *)&at, sizeof at)) {
        (void)!write(2, "nobody is there", 15);
        return 1;
    }
    (void)!read(server, &code, 1);
    for (ssize_t got; (got = read(server, text, sizeof text)) > 0;) (void)!write(1, text, got);
    return code;
}

/* app wait | app stubborn | app exit CODE | app say CODE WORD | app flood BYTES | app ask PORT */
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
    if (!strcmp(verb, "ask")) return ask(atoi(argv[2]));
    if (!strcmp(verb, "wait") || !strcmp(verb, "stubborn")) {
        signal(SIGTERM, *verb == 'w' ? leave : SIG_IGN);
        for (;;) pause();
    }
    return 99;
}
"""
IMAGE: Final = f"localhost/rootlet-one-binary:{hashlib.sha256(SOURCE.encode()).hexdigest()[:12]}"
"""Another source is another image."""


def ensure_one_binary_image(directory: Path) -> str:
    """Name of the image; built unless it is there. Skips where there is no C compiler."""
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
