"""Real answers of real servers, a file for each version, as tests/contract/test_error_answers.py has written them.

The kind goes by the cause, whatever the status and the words around it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from workers.kubecontainer.runtime import ErrorKind
from workers.libpod import failures

DIRECTORY: Final = Path(__file__).with_name("error_answers")
FILES: Final = sorted(DIRECTORY.glob("*.json"))
ANSWERS: Final = [
    pytest.param(answer, id=f"{file.stem}: {case}")
    for file in FILES
    for case, answer in json.loads(file.read_text()).items()
]


def test_there_are_answers_of_the_oldest_and_of_a_newer_podman() -> None:
    assert [file.stem for file in FILES] == ["4.3.1", "5.4.2"]


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_kind_of_an_answer(answer: dict[str, Any]) -> None:
    error = failures.call_error("call", answer["status"], answer["body"].encode())
    assert error.kind is ErrorKind(answer["kind"])


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_cause_alone_is_enough(answer: dict[str, Any]) -> None:
    """Neither the status, which changes from version to version, nor the words for people decide."""
    cause = json.loads(answer["body"].splitlines()[0])["cause"]
    body = json.dumps({"cause": cause, "message": "some words", "response": 500}).encode()
    assert failures.call_error("call", 500, body).kind is ErrorKind(answer["kind"])
