"""Categories of enumerated attributes: a list of values in the schema. Cells hold their places in it, the *codes*.

The core stores and reads codes, an ordinary column of unsigned integers (see `codes`).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..base.arguments import is_iterable
from ..base.printable import brief
from ..errors import CorruptionError, SchemaError
from . import datatype
from .datatype import AnyArray, Value

_SHOWN = 20
COUNT_MAX = 1 << 16
"""Categories of an attribute at most, as in the core."""
BYTES_MAX = 1 << 20
"""Bytes of the categories of an attribute together at most."""


@dataclass(frozen=True)
class Categories:
    """The categories of an attribute, by code."""

    dtype: str
    """The type of the values."""
    values: tuple[Value, ...]
    ordered: bool
    codes: str
    """The type of the codes."""

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def array(self) -> AnyArray:
        """The values as NumPy has them; without any value one that is not to be used."""
        made = np.empty(max(len(self), 1), datatype.numpy_of(self.dtype))
        made[:] = list(self.values) or [datatype.default_fill(self.dtype)]
        return made

    @cached_property
    def conversions(self) -> dict[str, Any]:
        """What is made of the values once for all columns, by its kind."""
        return {}

    @cached_property
    def ascending(self) -> tuple[AnyArray, AnyArray]:
        """Numbers or times in ascending order, and the code of each."""
        order = np.argsort(self.array[: len(self)])
        return self.array[order], order

    def decoded(self, codes: AnyArray, valid: AnyArray | None) -> AnyArray:
        """The values of codes; of those that are not valid, any."""
        if valid is not None:
            codes = np.where(valid, codes, codes.dtype.type(0))
        self.check(codes if valid is None else codes[valid])
        return self.array[codes]

    def check(self, codes: AnyArray) -> None:
        """A `CorruptionError` if a code that was read is that of no category."""
        if codes.size and int(codes.max()) >= len(self):
            raise CorruptionError(
                f"a cell has the code {int(codes.max())}, the attribute has {len(self)} categories: what is stored is "
                f"not what was written; a.verify() says where"
            )

    def shown(self) -> str:
        """The categories for messages and tables."""
        sign = " < " if self.ordered else ", "
        some = [datatype.show(value, self.dtype) for value in self.values[:_SHOWN]]
        return sign.join([*some, f"… ({len(self)})"] if len(self) > _SHOWN else some)

    def to_json(self) -> str:
        """All of it as text, for the metadata of Arrow fields."""
        texts = [datatype.to_text(self.dtype, value) for value in self.values]
        return json.dumps({"categories": texts, "ordered": self.ordered, "codes": self.codes})


def codes_type(count: int) -> str:
    """The least type of codes with room for as many categories again, as the core chooses it."""
    return "uint8" if count <= 1 << 7 else "uint16" if count <= 1 << 15 else "uint32"


def made(what: str, dtype: str, given: Iterable[Any], ordered: bool, codes: Any) -> Categories:
    """The categories that a caller gave, for an attribute whose values are of `dtype`."""
    if isinstance(given, str | bytes) or not is_iterable(given):
        raise SchemaError(f"{what}: categories are a list of values, not {brief(given)}")
    values = tuple(datatype.scalar(dtype, value, f"{what}: a category") for value in given)
    kind = codes_type(len(values)) if codes is None else datatype.parse(codes)
    return Categories(dtype, values, bool(ordered), kind)


def attr_arguments(dtype: str, text: bytes) -> dict[str, Any]:
    """The mirror of `Categories.to_json`, as arguments of `Attr`."""
    known = json.loads(text)
    return {**known, "categories": [datatype.from_text(dtype, value) for value in known["categories"]]}


def may_be(dtype: str) -> bool:
    """Whether values of this type may be categories."""
    return dtype in ("string", "bytes") or (datatype.is_primitive(dtype) and not datatype.is_complex(dtype))


def gathered(kept: list[Any], entries: list[Any]) -> list[Any] | None:
    """The entries that are no category yet, behind those that are; None if these are too many for a schema."""
    seen = set(kept)
    made = kept + [value for value in dict.fromkeys(entries) if value not in seen]
    return made if len(made) <= COUNT_MAX and sum(map(_size, made)) <= BYTES_MAX else None


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else 8


def in_order(kept: list[Any], entries: list[Any]) -> bool:
    """Whether two lists of ordered categories do not contradict each other: one begins with the other."""
    count = min(len(kept), len(entries))
    return kept[:count] == entries[:count]
