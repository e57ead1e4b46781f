"""How much of a long test runs at the gate, where the same few examples run for every change; elsewhere all of it."""

import os

AT_GATE = os.environ.get("HYPOTHESIS_PROFILE") == "gate" and "GRIDSTONE_TEST_DEEP" not in os.environ


def lives(number: int) -> int:
    """So many examples of a state machine; a third of them at the gate."""
    return -(-number // 3) if AT_GATE else number
