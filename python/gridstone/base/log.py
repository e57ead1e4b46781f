"""The loggers `gridstone.commit`, `.merge`, `.vacuum`, `.copy` and `.repair`, and what the core tells them.

Nothing is printed unless the program configures `logging`. Each record has its values as attributes (`record.version`).
"""

import logging
from collections.abc import Iterable
from typing import Any

_PARENT = logging.getLogger("gridstone")
_PARENT.addHandler(logging.NullHandler())
_LOGGERS = {topic: _PARENT.getChild(topic) for topic in ("commit", "merge", "vacuum", "copy", "repair")}
_NOTHING = 255

# Attributes that every record of `logging` has.
_TAKEN = {*vars(logging.makeLogRecord({})), "message", "asctime"}


def wanted() -> int:
    """The least level that one of the loggers takes; the core makes no event below it."""
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        for logger in _LOGGERS.values():
            if logger.isEnabledFor(level):
                return level
    return _NOTHING


def tell(events: Iterable[tuple[int, str, str, dict[str, Any], float]]) -> None:
    """Logs events: level, topic, what happened, its values by name, and when (seconds since 1970)."""
    for level, topic, what, values, created in events:
        logger = _LOGGERS[topic]
        if logger.isEnabledFor(level):
            logger.handle(_record(logger, level, what, values, created))


def _record(logger: logging.Logger, level: int, what: str, values: dict[str, Any], created: float) -> logging.LogRecord:
    """A record whose text is made only when a handler asks for it, dated when the event happened."""
    named = {f"commit_{name}" if name in _TAKEN else name: value for name, value in values.items()}
    shown = " ".join(f"{name}=%({name}){'.6g' if isinstance(named[name], float) else 's'}" for name in named)
    extra = {"event": what, **named}
    record = logger.makeRecord(logger.name, level, __file__, 0, f"{what}: {shown}", (named,), None, None, extra)
    record.relativeCreated += (created - record.created) * 1e3
    record.created, record.msecs = created, created % 1 * 1e3
    return record
