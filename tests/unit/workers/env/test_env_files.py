"""Files of variables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.env.env_files import MAX_ENV_FILE_BYTES, EnvFileError, parse_env_file, read_env_file
from workers.userns.unshare import Unshare

NOBODY = Unshare(podman="/nonexistent/podman")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("K='v'", "v"),
        ("K='v'\n", "v"),
        ("K='v'\r\n", "v"),
        ("  \tK='v'", "v"),
        ("\n# K='comment'\n \t\n  # another\nK='v'", "v"),
        ("K='v' # comment", "v"),
        ("K='v'#comment", "v"),
        ("K='v' \t", "v"),
        ("K=''", ""),
        ("K= 'v'", ""),
        ("K=\t", ""),
        ("K='$HOME ${A} $(B) \\n \"x\" `y`'", '$HOME ${A} $(B) \\n "x" `y`'),
        ("K=' a = b # c '", " a = b # c "),
        ("K='one\ntwo\n\n# three'\nL='l'", "one\ntwo\n\n# three"),
        ("K='one\r\ntwo'", "one\ntwo"),
        ("K='\n'", "\n"),
        ("L='K=x\nK='\nK='v'", "v"),
        ("K='first'\nK='second'", "first"),
        ("k='lower'\nK='v'", "v"),
        ("L='l'", ""),
        ("", ""),
        ("K='v'\nnonsense", "v"),
    ],
)
def test_the_value(text: str, value: str) -> None:
    assert parse_env_file(text).value("K") == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A='a'\nnonsense", "at line 2: missing '='"),
        ("=v", "at line 1: empty variable name"),
        (" \t='v'", "at line 1: empty variable name"),
        ("A = 'a'", "at line 1: whitespace before '=' is not allowed"),
        ("# one\n\nA=a", "at line 3: value must be enclosed in single quotes"),
        ('A="a"', "at line 1: value must be enclosed in single quotes"),
        ("A=", "at line 1: value must be enclosed in single quotes"),
        ("A='a' b", "at line 1: unexpected content after closing quote"),
        ("A='a\nb'c", "at line 2: unexpected content after closing quote"),
        ("A='it'\\''s'", "at line 1: unexpected content after closing quote"),
        ("A='a'\nB='b\nK='v'\n\n", "at line 3: unexpected content after closing quote"),
        ("B='b\n\n", "starting at line 1: unclosed single quote"),
    ],
)
def test_what_is_wrong_before_the_variable_is_told_by_its_line(text: str, message: str) -> None:
    with pytest.raises(EnvFileError) as wrong:
        parse_env_file(text).value("K")
    assert str(wrong.value) == f"invalid environment variable format {message}"


names = st.from_regex(r"[A-Z_][A-Z0-9_.-]{0,8}", fullmatch=True)
values = st.text(st.characters(exclude_characters="'\r", exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(names, values, max_size=6))
def test_what_is_written_is_read(variables: dict[str, str]) -> None:
    text = "".join(f"{name}='{value}'\n" for name, value in variables.items())
    assert {name: parse_env_file(text).value(name) for name in variables} == variables


@given(st.text(alphabet="AK='# \n\t\rx", max_size=30))
def test_any_text_has_a_value_or_is_wrong(text: str) -> None:
    try:
        assert isinstance(parse_env_file(text).value("K"), str)
    except EnvFileError:
        return


def test_a_file_in_a_volume(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.env").write_text("K='v'\n")
    assert read_env_file(tmp_path, "a/b.env", NOBODY).value("K") == "v"
    assert read_env_file(tmp_path, "./a//b.env", NOBODY).value("K") == "v"


def test_a_file_that_is_too_large_or_no_text(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"K='v'\n" + b"#" * MAX_ENV_FILE_BYTES)
    (tmp_path / "binary").write_bytes(b"K='\xff'\n")
    for name, what in (("large", "larger than 1048576 bytes"), ("binary", "not UTF-8")):
        with pytest.raises(EnvFileError, match=what):
            read_env_file(tmp_path, name, NOBODY).value("K")


@pytest.mark.parametrize("name", ["none", "a/none", "fifo", "directory", "loop", "file/below", ".", ".."])
def test_what_is_no_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match=r"."):
        read_env_file(tmp_path, name, NOBODY).value("K")


def test_no_symlink_leads_out_of_the_volume(tmp_path: Path) -> None:
    """A symlink leads to where it would lead in a container that sees nothing but the volume."""
    (tmp_path / "outside.env").write_text("K='outside'\n")
    volume = tmp_path / "volume"
    (volume / "deep" / "er").mkdir(parents=True)
    (volume / "outside.env").write_text("K='inside'\n")
    (volume / "absolute").symlink_to("/outside.env")
    (volume / "climbing").symlink_to("../../../outside.env")
    (volume / "deep" / "er" / "back").symlink_to("../../outside.env")
    (volume / "way").symlink_to("deep/er")
    (volume / "elsewhere").symlink_to(tmp_path)
    for name in ("absolute", "climbing", "deep/er/back", "way/back", "../outside.env", "deep/../../outside.env"):
        assert read_env_file(volume, name, NOBODY).value("K") == "inside", name
    with pytest.raises(FileNotFoundError):
        read_env_file(volume, "elsewhere/outside.env", NOBODY).value("K")


def test_a_file_is_read_to_its_first_fault_and_shows_no_value() -> None:
    found = parse_env_file("A='kept to ourselves'\nnonsense\nB='b'")
    assert found.value("A") == "kept to ourselves"
    with pytest.raises(EnvFileError, match="at line 2: missing '='"):
        found.value("B")
    assert repr(found) == "EnvFile('A')"
