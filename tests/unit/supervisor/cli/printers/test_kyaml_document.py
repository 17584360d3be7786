"""Objects as KYAML."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from supervisor.cli.printers.documents import DOCUMENTS
from supervisor.cli.printers.kyaml_document import as_kyaml

POD = {
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web", "no": "yes"}, "annotations": {}},
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "containers": [
            {"name": "a", "image": "i", "args": ["sh", "-c", "one\n  two\n\nthree"], "stdin": False},
            {"name": "b", "ports": [{"containerPort": 80}], "env": []},
        ],
        "terminationGracePeriodSeconds": 30,
    },
}
SHOWN = """---
{
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    annotations: {},
    labels: {
      app.kubernetes.io/name: "web",
      "no": "yes",
    },
    name: "web",
  },
  spec: {
    containers: [{
      args: [
        "sh",
        "-c",
        "\\
           one\\n\\
          \\  two\\n\\
           \\n\\
           three\\
          ",
      ],
      image: "i",
      name: "a",
      stdin: false,
    }, {
      env: [],
      name: "b",
      ports: [{
        containerPort: 80,
      }],
    }],
    terminationGracePeriodSeconds: 30,
  },
}
"""


def test_a_pod_as_kubectl_shows_it() -> None:
    assert as_kyaml(POD) == SHOWN
    assert DOCUMENTS["kyaml"](POD) == SHOWN
    assert yaml.safe_load(SHOWN) == POD


@pytest.mark.parametrize(
    "key",
    [
        *(
            "",
            "null",
            "~",
            "Yes",
            "off",
            "t",
            "F",
            "1",
            "007",
            "0x1F",
            "1e5",
            "1_000",
            "1.5",
            ".5",
            "2026-11-29",
            "inf",
        ),
        *("a b", "a:b", "-a", "a.", "/a", "a#", "é#", "a,", "{", "11:00", "NaN", "0b1", "tab\there", "two\nlines"),
    ],
)
def test_keys_that_read_as_something_else_are_quoted(key: str) -> None:
    written = as_kyaml({key: 1})
    assert written.startswith('---\n{\n  "'), written
    assert yaml.safe_load(written) == {key: 1}


@pytest.mark.parametrize(
    "key", ["a", "A1", "a.b/c", "a-b", "_x_", "été", "x86_64", "1a", "node.kubernetes.io/not-ready"]
)
def test_other_keys_are_not(key: str) -> None:
    assert as_kyaml({key: 1}) == f"---\n{{\n  {key}: 1,\n}}\n"


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            " ",
            "a",
            '"',
            "\\",
            "\\n",
            "\n",
            "\n\n",
            "a\n",
            "a\n b\n\tc",
            " a\nb ",
            "\r\n\r",
            "\ta",
            "a\x1b[31mb\x00",
        ),
        *("é", "\xa0\n\xa0", "\u2028", "\U0001f600", "\u202e", "\x7f\x85", "#x", "a\n\x0bb", "a: b", "yes", "1"),
        *(
            [],
            {},
            None,
            True,
            1,
            -1.5,
            10**20,
            [[]],
            [[1], [{}]],
            [{}, 1],
            ["a", {"b": "c\nd"}],
            [{"a": [{"b": ["c"]}]}],
        ),
    ],
)
def test_every_value_reads_back_and_steers_no_terminal(value: Any) -> None:
    written = as_kyaml({"k": value})
    assert yaml.safe_load(written) == {"k": value}
    assert written.replace("\n", "").replace("\t", "").isprintable()


def test_half_of_a_pair_is_a_question_mark() -> None:
    assert as_kyaml({"k": "\ud800"}) == '---\n{\n  k: "?",\n}\n'
