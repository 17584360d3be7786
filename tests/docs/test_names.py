"""Commands, options and settings that pages name in backquotes exist."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click
import msgspec
import pytest

import ipc
import workers
from tests.docs.reference.commands import every_command
from tests.docs.reference.settings import every_setting

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted(
    page
    for page in (ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md"))
    if page.name not in ("kubectl.md", "commands.md", "parity.md")
)
"""Not the pages that tests make of the commands themselves, or that speak of the kubelet's settings."""
OF_OTHERS: Final = frozenset({"podman.socket"})
"""Names that look like settings."""
ELSEWHERE: Final = frozenset({"volumesInUse", "flushFrequency", "splitStream", "filePattern"})
"""Names of the kubelet that are in no code of ours, as nothing here has them."""
_COMMAND: Final = re.compile(r"`rootlet ([^`\n]*)`|^\$ rootlet (.*)$", re.MULTILINE)
_SECTIONED: Final = re.compile(r"`([a-z][A-Za-z]+(?:\.[a-z][A-Za-z]+)+)`")
_BARE: Final = re.compile(r"`([a-z]+[A-Z][A-Za-z]*)(?:: [^`\n]*)?`")
_CODE_WORD: Final = re.compile(r"\b[a-z]+[A-Z][A-Za-z]*\b")
_WORD: Final = re.compile(r"[a-z][a-z-]*")
_LONG: Final = re.compile(r"--[a-z][a-z-]*")


def known() -> Mapping[str, frozenset[str]]:
    """Each command -> its long options, with those that stand before it."""
    found = {}
    for context in every_command():
        options = (param for param in context.command.get_params(context) if isinstance(param, click.Option))
        names = (name for option in options for name in (*option.opts, *option.secondary_opts))
        found[context.command_path.removeprefix("rootlet ")] = frozenset(names)
    return found


def unknown_commands(text: str, commands: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Uses of a command or of an option that is not there."""
    for in_words, in_shell in _COMMAND.findall(text):
        use = (in_words or in_shell).replace("\\|", "|").partition(" | ")[0].partition(" #")[0]
        words = _split(use.partition(" -- ")[0])
        while words[:1] and words[0] in ("--instance", "--socket", "-n", "--namespace"):
            del words[:2]
        if words and words[0].startswith("-"):
            continue  # the program's own, such as --version
        alternatives = words[0].split("|") if words else []
        paths = [_longest(name, words[1:], commands) for name in alternatives if _WORD.fullmatch(name)]
        options = {option for word in words for option in _LONG.findall(word) if word.startswith(("-", "["))}
        if None in paths or any(options - commands[path] for path in paths if path):
            yield f"rootlet {use}"


def _split(use: str) -> list[str]:
    try:
        return shlex.split(use)
    except ValueError:
        return use.split()


def _longest(name: str, words: list[str], commands: Mapping[str, frozenset[str]]) -> str | None:
    path = name if name in commands else None
    if path and words and f"{name} {words[0]}" in commands:
        return f"{name} {words[0]}"
    return path


def unknown_settings(text: str) -> Iterator[str]:
    """Names below a section of the configuration that is no setting of it."""
    settings = {setting.name for setting in every_setting()}
    sections = {name.partition(".")[0] for name in settings if "." in name}
    prefixes = {name.rpartition(".")[0] for name in settings if "." in name}
    for name in _SECTIONED.findall(text):
        is_ours = name.partition(".")[0] in sections and name not in OF_OTHERS and not _is_room(name)
        if is_ours and name not in settings | prefixes:
            yield name


@functools.cache
def names_in_code() -> frozenset[str]:
    """Settings and the parts of their names, fields of API objects, and all other words like these in our sources."""
    parts = (part for setting in every_setting() for part in setting.name.split("."))
    packages = ((ipc.__path__, "ipc."), (workers.__path__, "workers."))
    found = (each for path, prefix in packages for each in pkgutil.walk_packages(path, prefix))
    modules = (importlib.import_module(each.name) for each in found)
    types = (value for module in modules for value in vars(module).values() if isinstance(value, type))
    fields = (field for each in types if issubclass(each, msgspec.Struct) for field in each.__struct_encode_fields__)
    sources = (file for package in ("ipc", "supervisor", "workers") for file in (ROOT / package).rglob("*.py"))
    words = (word for source in sources for word in _CODE_WORD.findall(source.read_text()))
    return frozenset((*parts, *fields, *words))


def unknown_names(text: str) -> Iterator[str]:
    """Names like ``maxPods`` that neither a setting nor anything else has."""
    return (name for name in _BARE.findall(text) if name not in names_in_code() | ELSEWHERE)


def _is_room(name: str) -> bool:
    """Whether it is a package or a module of the agent."""
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_settings_of_a_page_exist(page: Path) -> None:
    text = page.read_text()
    assert list(unknown_commands(text, known())) == []
    assert list(unknown_settings(text)) == []
    assert list(unknown_names(text)) == []


def test_words_of_others_are_still_needed() -> None:
    used = {name for page in PAGES for name in _BARE.findall(page.read_text())}
    assert used >= ELSEWHERE
    assert not names_in_code() & ELSEWHERE


def test_names_that_are_not_there_are_found() -> None:
    text = "`rootlet gett pods`, `rootlet get pods --sort-bye x`, `rootlet get pods`, `workers.cuont`, `workers.count`"
    bare = "`maxPdos`, `maxPods`, `maxPods: 3`, `imageGCLowTreshold: 80`, `hostPort`"
    assert list(unknown_commands(text, known())) == ["rootlet gett pods", "rootlet get pods --sort-bye x"]
    assert list(unknown_settings(text)) == ["workers.cuont"]
    assert list(unknown_names(bare)) == ["maxPdos", "imageGCLowTreshold"]
