"""Options of object stores, by name; some of them are secret."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ..base.printable import brief
from ..errors import AccessError, InputError

_SECRET = ("secret", "token", "password", "account_key", "access_key", "service_account_key", "sas", "master_key")
_PUBLIC = ("access_key_id", "aws_access_key_id", "token_file", "_uri")
"""What would be taken for a secret by a part of its name, and is none: an id, a path, an address."""

_NESTED = ("client_kwargs", "client_options")
"""Where users of s3fs and of obstore put what belongs to the client."""
_RETRYING = "retry_config"
"""Where users of obstore say how often a request is repeated."""


def is_secret(name: str) -> bool:
    """Whether the value of an option must not be shown or pickled."""
    known = name.lower()
    return any(part in known for part in _SECRET) and not any(known.endswith(part) for part in _PUBLIC)


@dataclass(frozen=True)
class Given:
    """Options as they were given: values to show and to pickle, and values that are secret."""

    plain: tuple[tuple[str, str], ...] = ()
    secret: tuple[tuple[str, str], ...] = ()
    left: tuple[str, ...] = ()
    """Names of secrets that were left behind when these options were pickled."""

    def to_pass(self) -> dict[str, str]:
        """What the core is given. An `AccessError` if secrets were left behind and the environment has none."""
        if self.left and not _has_credentials():
            raise AccessError(
                f"this context had {', '.join(self.left)} in its storage_options when it was pickled, and credentials "
                "are never pickled: set them in the environment of this process (AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY), or open the store "
                "anew with Context(storage_options=...)"
            )
        return dict(self.plain + self.secret)

    def left_behind(self) -> "Given":
        """What of this may be pickled: with a secret its other half stays behind too, which means nothing alone."""
        names = tuple(name for name, _ in self.secret) or self.left
        plain = tuple(pair for pair in self.plain if not names or pair[0] not in ("key", *_PUBLIC))
        return Given(plain, (), names)

    def shown(self) -> str:
        """For `repr`: values, and "..." for those that are secret."""
        shown = {**dict(self.plain), **dict.fromkeys((*self.left, *(name for name, _ in self.secret)), "...")}
        return f", storage_options={shown}" if shown else ""

    def __repr__(self) -> str:
        return f"Given({self.shown()})"


def given_options(options: Mapping[str, Any] | None) -> Given:
    """The options a user gave; None: none. Nested `client_kwargs` and `client_options` are taken as if they stood
    beside the others, of a `retry_config` the `max_retries`.
    """
    if options is None:
        return Given()
    if not isinstance(options, Mapping):
        raise InputError(f"storage_options is a mapping of names to values, not {type(options).__name__}")
    flat: dict[Any, Any] = dict(options)
    for place in (*_NESTED, _RETRYING):
        nested = flat.pop(place, None) or {}
        if not isinstance(nested, Mapping):
            raise InputError(f"storage_options[{place!r}] is a mapping of names to values, not {type(nested).__name__}")
        if place == _RETRYING:
            nested = _retries(nested)
        if twice := sorted(set(nested) & set(flat)):
            raise InputError(f"the storage option {twice[0]!r} is given twice, once in {place}; give it once")
        flat |= nested
    if strangers := [name for name in flat if not isinstance(name, str)]:
        raise InputError(f"storage_options names options by text, not by {brief(strangers[0])}")
    texts = {name.lower(): _text(name, value) for name, value in flat.items() if value is not None}
    pairs = sorted(texts.items())
    return Given(
        tuple(pair for pair in pairs if not is_secret(pair[0])), tuple(pair for pair in pairs if is_secret(pair[0]))
    )


def _retries(config: Mapping[Any, Any]) -> dict[str, Any]:
    """What of obstore's configuration of retries there is here."""
    if others := [name for name in config if name != "max_retries"]:
        raise InputError(
            f"storage_options[{_RETRYING!r}] has {brief(others[0])}; here it takes max_retries alone: waits between "
            "retries are chosen, and end a minute after the request began"
        )
    return {"retries": config["max_retries"]} if config else {}


def _text(name: Any, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:
        raise InputError(f"the storage option {brief(name)} is a number of 64 bits, not {brief(value)}")
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, timedelta):
        return str(value.total_seconds())
    raise InputError(
        f"the storage option {brief(name)} is text, a number, a timedelta, True or False, not {type(value).__name__}"
    )


def _has_credentials() -> bool:
    """Whether the environment has credentials: a secret, a file, a role."""
    prefixes = ("AWS_", "GOOGLE_", "AZURE_")
    says = (
        "SECRET",
        "TOKEN",
        "ROLE",
        "CREDENTIALS",
        "ACCOUNT_KEY",
        "ACCESS_KEY",
        "SAS",
        "SERVICE_ACCOUNT",
        "CLIENT_ID",
    )
    return any(name.startswith(prefixes) and any(part in name for part in says) for name in os.environ)
