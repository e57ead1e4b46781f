"""The bucket of a server of object stores that tests use, where there is one."""

import os

BUCKET = os.environ.get("GRIDSTONE_TEST_BUCKET")
"""Its URI, as `cargo xtask s3 -- COMMAND` (or `azure`) sets it; what reaches it stands beside it."""

KINDS = ["local", "memory", *(["bucket"] if BUCKET else [])]
"""The kinds of stores that there are for tests."""

_VARIABLES = {
    "s3": {"endpoint_url": "AWS_ENDPOINT_URL", "key": "AWS_ACCESS_KEY_ID", "secret": "AWS_SECRET_ACCESS_KEY"},
    "az": {
        "endpoint_url": "AZURE_STORAGE_ENDPOINT",
        "account_name": "AZURE_STORAGE_ACCOUNT_NAME",
        "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
    },
}


def _pairs(variable: str) -> dict[str, str]:
    """What a variable has: `name=value` with a space between them."""
    return dict(pair.split("=", 1) for pair in os.environ[variable].split())


def options() -> dict[str, str]:
    """The storage options that reach it."""
    return _pairs("GRIDSTONE_TEST_BUCKET_OPTIONS")


def options_of_a_stranger() -> dict[str, str]:
    """Those with which it is refused."""
    return {**options(), **_pairs("GRIDSTONE_TEST_BUCKET_WRONG")}


def variables_of(bucket: str) -> dict[str, str]:
    """The options as variables of the environment, by which users say them."""
    names = _VARIABLES[bucket.split(":")[0]]
    return {names[option]: value for option, value in options().items()}
