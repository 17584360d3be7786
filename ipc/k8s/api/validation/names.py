"""The syntax of names: a table of patterns with their maximum length.

Source: apimachinery pkg/util/validation/validation.go and pkg/api/validate/content; sysctls: pkg/apis/core/validation.
"""

import re
from typing import Final

import msgspec

from ipc.host.text.ip_address import parse_ip


class NameRule(msgspec.Struct, frozen=True):
    """Form of a kind of name; `advice` finishes the sentence "the name must …"."""

    pattern: re.Pattern[str]
    max_chars: int
    advice: str

    def problem(self, value: str) -> str | None:
        """Problem with the name, or None. The length is looked at first, which bounds the pattern's work."""
        if len(value) > self.max_chars:
            return f"must be no more than {self.max_chars} characters"
        return None if self.pattern.fullmatch(value) else f"must {self.advice}"


_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_UNDERSCORE_LABEL: Final = r"_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?"
_SYSCTL_SEGMENT: Final = r"[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?"
_ENDS: Final = "start and end with a letter or digit"

DNS_LABEL: Final = NameRule(re.compile(_LABEL), 63, f"consist of lower case letters, digits and '-', and {_ENDS}")
DNS_SUBDOMAIN: Final = NameRule(
    re.compile(rf"{_LABEL}(?:\.{_LABEL})*"), 253, f"consist of lower case letters, digits, '-' and '.', and {_ENDS}"
)
DNS_SUBDOMAIN_WITH_UNDERSCORE: Final = NameRule(
    re.compile(rf"{_UNDERSCORE_LABEL}(?:\.{_UNDERSCORE_LABEL})*"),
    253,
    f"consist of lower case letters, digits, '-', '_' and '.', and {_ENDS}",
)
NODE_HOSTNAME: Final = NameRule(DNS_SUBDOMAIN.pattern, 64, DNS_SUBDOMAIN.advice)
LABEL_VALUE: Final = NameRule(
    re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"),
    63,
    f"be empty or consist of letters, digits, '-', '_' and '.', and {_ENDS}",
)
QUALIFIED_NAME_PART: Final = NameRule(
    re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"),
    63,
    f"consist of letters, digits, '-', '_' and '.', and {_ENDS}",
)
PORT_NAME: Final = NameRule(
    re.compile(r"(?=[^a-z]*[a-z])(?!.*--)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"),
    15,
    f"consist of lower case letters, digits and single '-', hold at least one letter, and {_ENDS}",
)
ENV_NAME: Final = NameRule(re.compile(r"[ -<>-~]+"), 32_767, "consist of printable ASCII characters other than '='")
CONFIG_KEY: Final = NameRule(
    re.compile(r"(?!\.\.)(?!\.$)[-._a-zA-Z0-9]+"),
    253,
    "consist of letters, digits, '-', '_' and '.', and be neither '.' nor start with '..'",
)
HTTP_HEADER: Final = NameRule(re.compile(r"[-A-Za-z0-9]+"), 1024, "consist of letters, digits and '-'")
SYSCTL: Final = NameRule(
    re.compile(rf"{_SYSCTL_SEGMENT}(?:[./]{_SYSCTL_SEGMENT})*"),
    253,
    "consist of lower case letters, digits, '-' and '_' in parts separated by '.' or '/'",
)
UID: Final = NameRule(
    re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"),
    63,
    f"consist of letters, digits and '-', and {_ENDS}: it becomes part of labels and paths",
)


def qualified_name_problem(value: str) -> str | None:
    """Problem with a label key or condition type, or None: a name with an optional DNS prefix and '/'."""
    prefix, slash, name = value.rpartition("/")
    if slash and (problem := DNS_SUBDOMAIN.problem(prefix)):
        return f"prefix part {problem}"
    problem = QUALIFIED_NAME_PART.problem(name)
    return f"name part {problem}" if problem else None


def ip_problem(value: str) -> str | None:
    """Problem with an IPv4 or IPv6 address without zone (IsValidIPForLegacyField), or None."""
    try:
        parse_ip(value)
    except ValueError:
        return "must be a valid IP address (e.g. 10.9.8.7 or 2001:db8::ffff)"
    return None


def relative_path_problem(value: str) -> str | None:
    """Problem with a path that must stay below its root, or None."""
    if value.startswith("/"):
        return "must be a relative path"
    return backstep_problem(value)


def host_path_problem(value: str) -> str | None:
    """Problem with the path of a file on the host, or None. Upstream takes a relative one, and leaves it to the runtime
    to say below which directory it is looked for."""
    if not value.startswith("/"):
        return "must be an absolute path: there is no directory on the host that a relative one would begin at"
    return backstep_problem(value)


def backstep_problem(value: str) -> str | None:
    """Whether a path climbs with '..'."""
    return "must not contain '..'" if ".." in value.split("/") else None


def below_volume_problem(value: str) -> str | None:
    """Problem with the path of a file that a volume projects, or None; names with a leading '..' are the writer's
    own."""
    if value.startswith(".."):
        return "must not start with '..'"
    return relative_path_problem(value)
