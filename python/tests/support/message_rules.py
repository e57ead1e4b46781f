"""What every message of an error keeps to (CONTRIBUTING.md, "Messages")."""

import re

_FAULTS: dict[str, re.Pattern[str]] = {
    "a word of the core": re.compile(
        r"\bticks?\b|\bkey ranges?\b|\bKeyRange\b|\b_log/|\bwas looked for\b|\bslots?\b|\bordered keys?\b",
        re.IGNORECASE,
    ),
    "what a debugger shows": re.compile(
        r"\bSome\(|\bOk\(|\bErr\(|\bDatatype::|\bDescription \{|object at 0x|\bpanicked\b|\bunwrap\(\)|\bTraceback\b"
    ),
    "the name of a Python error": re.compile(
        r"\b(?:Type|Key|Value|Attribute|Index|ZeroDivision|Overflow|UnicodeEncode|UnicodeDecode)Error\b"
    ),
    "a private name": re.compile(r"(?<![\w'\"/.])_[A-Z]\w+|gridstone(?:\.\w+)*\._\w+"),
    "a file of the package": re.compile(r"gridstone/\w+/\w+\.(?:py|rs)\b"),
    "a word twice": re.compile(r"(?<![\w.'\"-])((?!type)[a-z]{2,}) \1(?![\w.'\"-])"),
    "two spaces": re.compile(r"\S  +\S"),
    "no end, or one of another message": re.compile(r"[.;:,]$|;\s*;"),
    "what was put together of nothing": re.compile(r"^\s*$|^[;:,]|: :|; ;|\(, |, \)"),
}
"""By what is wrong: what no message holds, whatever it is about."""
_OF_PYTHON: dict[str, re.Pattern[str]] = {
    "a constant of Python": re.compile(r"=(?:True|False|None)\b|\bNone\b"),
    "an argument of Python": re.compile(
        r"(?<![\w-])(?:attrs|attr|box|where|dims|by|to|limit|having|order|out|overwrite|grow|evolve|union|schema|types"
        r"|max_bytes|on_error|rejected|commit_key|message|sparse|duplicates|dedup|version|timestamp)="
    ),
    "a call of Python": re.compile(r"\bgs\.\w|\bgridstone\.[a-z]|\bscan\(|\ba\.\w+\(|\b(?:read|write|alter|resize)\("),
    "a class of errors": re.compile(r"\b[A-Z]\w+Error\b"),
}
"""By what is wrong: what no message of the command line holds besides."""
_LONG = re.compile(r"(?<![\w.-])\d{10,}(?![\w.])")


def faults(text: str, *, command_line: bool = False, of_time: bool = False) -> list[str]:
    """What is wrong with a message; `of_time`: it is about a time, so that a long number in it would be one counted."""
    rules = {**_FAULTS, **(_OF_PYTHON if command_line else {}), **({"a time as a number": _LONG} if of_time else {})}
    return [f"{what}: {found[0]!r}" for what, rule in rules.items() if (found := rule.search(text.strip()))]
