"""How a question to an array is answered: what is planned before a cell is read, and what an answer has read."""

import inspect
import itertools
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from .. import _native
from ..base.arguments import checked, flag, known, mapping, text, whole
from ..base.printable import brief
from ..errors import InputError
from ..query.box import Region, region_of
from ..query.condition import Expression, condition_of
from ..result.plan import ArrayScan, Plan
from ..schema.array_schema import Schema
from . import estimate
from .aggregate import (
    Keys,
    answer_schema,
    check_ending,
    check_keys,
    keys_of,
    orders_of,
    quoted,
    texts_of,
)
from .filtering import check_names
from .noting import Looking
from .reduce import Question, check

_REDUCTIONS = ("sum", "mean", "min", "max", "any", "all", "var", "std")
QUESTIONS = ("aggregate", "partial", "read", "scan", "filter", "reduce", *_REDUCTIONS)
_NAME = re.compile(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")+)\"|([^\W\d]\w*)(?!\w*\s*\()")
"""A name in an expression: one in quotes, or one that no bracket follows. Texts are stepped over."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question before it is answered: its steps but the read, the columns it needs, and what the index may tell."""

    steps: tuple[tuple[str, dict[str, Any]], ...]
    columns: tuple[str, ...]
    keys: Keys | None
    """The keys of an aggregation that the index may answer in part; None of anything else."""


class Explainable(Looking):
    """The part of an array that tells how a question is answered."""

    @abstractmethod
    def _pinned(self) -> Any: ...

    @checked(question=text)
    def explain(self, question: str, *arguments: Any, analyze: bool = False, **named: Any) -> Plan:
        """How a question to this array is answered, as a `Plan` that prints readably.

            print(a.explain("aggregate", {"top": "max(sog)"}, by="kind", where="sog > 3"))
            a.explain("read", {"x": (0, 9)}, analyze=True).scans[0].stats["bytes_fetched"]

        Without `analyze` no cell is read: the log, the index of the fragments and the condition tell what is planned.
        What values rule out (`tiles_pruned`) shows only with `analyze`, which answers the question.

        Args:
            question: the name of the method: "aggregate", "partial", "read", "scan", "filter", "reduce", "sum", "mean",
                "min", "max", "any", "all", "var" or "std".
            arguments: those of that method, as it takes them.
            analyze: whether to answer it. Nothing is written: of `filter` the cells are read that it would write, and
                `to=` may be left out.
            named: arguments of that method by name.

        Returns:
            A plan of one scan: `plan.scans[0].planned` has the fragments, tiles and cells that are planned, `.stats`
            with `analyze` the counters of the answer, as `Result.stats` has them.

        Raises:
            InputError: an unknown question, or arguments that do not fit the schema or each other.
            UnsupportedError: a reduction of a sparse array.
            TypeError: arguments that the method does not take.
            BoundsError: the box is not inside the domain.
        """
        known("question", question, QUESTIONS)
        flag("analyze", analyze)
        source = self if self.native.in_transaction else self._pinned()
        if question == "filter":
            named = {"to": "", **named}
        bound = inspect.signature(getattr(source, question)).bind(*arguments, **named)
        bound.apply_defaults()
        given = dict(bound.arguments)
        schema = source._schema
        asked, condition = _asked(source, question, given), _condition_of(given)
        told = None if condition is None else json.loads(condition.check(schema.to_json()))
        region = region_of(schema, given.get("box"))
        source._note_cut(region)
        columns = _columns_of(schema, asked.columns, () if told is None else told["columns"])
        planned = estimate.planned(source.native, schema, region, told)
        held = planned.counted(asked.keys)
        stats = _answered(source, question, given) if analyze else {}
        where = None if condition is None else repr(Expression(condition))
        name = self.native.uri if self.native.path == "/" else f"{self.native.uri}:{self.native.path}"
        scan = ArrayScan(name, columns, where, stats, held)
        return Plan(_tree(asked, scan, None if given.get("box") is None else region), (scan,))


def _tree(asked: _Asked, scan: ArrayScan, region: Region | None) -> list[Mapping[str, Any]]:
    """The steps, each the only child of the one before; the last one reads."""
    info: dict[str, Any] = {"Projections": list(scan.columns or ())}
    info |= {} if region is None else {"Box": str(region)}
    info |= {} if scan.where is None else {"Condition": scan.where}
    node: dict[str, Any] = {"name": "READ", "extra_info": info, "children": []}
    for name, told in reversed(asked.steps):
        node = {"name": name, "extra_info": told, "children": [node]}
    return [node]


def _condition_of(given: Mapping[str, Any]) -> "_native.Condition | None":
    """The condition, unless cells are chosen by an array of booleans."""
    where = given.get("where")
    return condition_of(where) if isinstance(where, str | Expression) else None


def _asked(source: Any, question: str, given: Mapping[str, Any]) -> _Asked:
    """What a question does with the cells. An `InputError` if its arguments do not fit the schema."""
    schema: Schema = source._schema
    if question in ("aggregate", "partial"):
        mapping("aggregates", given["aggregates"])
        keys, texts = keys_of(schema, given["by"]), texts_of(given["aggregates"])
        info = {"Groups": [_key_text(key) for key in keys], "Aggregates": [_aggregate_text(*one) for one in texts]}
        answer = answer_schema(schema, keys, texts)
        ending = _ending(answer, given) if question == "aggregate" else {}
        if question == "aggregate" and given["to"] is not None:
            check_keys(schema, keys, texts)
        names = _names(schema, [*(text for _, text in texts), *(text for _, text, _ in keys)])
        from_index = keys if all(estimate.is_known(text) for _, text in texts) else None
        return _Asked((("AGGREGATE", {**info, **ending}),), names, from_index)
    if question == "reduce" or question in _REDUCTIONS:
        if question == "reduce":
            mapping("aggregates", given["aggregates"])
            texts = texts_of(given["aggregates"])
        else:
            texts = [(question, f"{_CALLS.get(question, question)}({quoted(source._reduced_attr().name)})")]
        asked = Question(given["axis"], given["box"], given["where"], None)
        gone = check(schema, texts, asked, is_written=given.get("to") is not None)
        axes = [schema.dims[axis].name for axis in gone]
        info = {"Aggregates": [_aggregate_text(*one) for one in texts], "Axes": axes}
        return _Asked((("REDUCE", info),), _names(schema, [text for _, text in texts]), None)
    attrs = tuple(source._names(given["attrs"], cells=given.get("where") is not None))
    if question == "filter":
        check_names(attrs)
    places = tuple(dim.name for dim in schema.dims) if schema.sparse or given["where"] is not None else ()
    steps = (("WRITE", {"Table": str(given["to"])}),) if question == "filter" and given["to"] != "" else ()
    return _Asked(steps, (*places, *attrs), None)


_CALLS: Mapping[str, str] = {"any": "bool_or", "all": "bool_and", "var": "var_pop", "std": "std_pop"}


def _aggregate_text(name: str, text: str) -> str:
    return text if name == text else f"{text} as {name}"


def _key_text(key: tuple[str, str, int | float | None]) -> str:
    name, text, width = key
    if width is not None:
        return f"{name} in bins of {width}"
    return name if text in (name, quoted(name)) else text


def _ending(answer: Schema, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is done with the groups; an `InputError` if the answer has no such columns, or it cannot be done."""
    check_ending(given["stream"], given["to"])
    names, info = [attr.name for attr in answer.attrs], dict[str, Any]()
    if given["having"] is not None:
        having = condition_of(given["having"])
        having.check(answer.to_json())
        info["Having"] = repr(Expression(having))
    orders = orders_of(given["order"])
    for name, _ in orders or ():
        if name not in names:
            raise InputError(f"order= names columns of the answer, {brief(names)}, not {brief(name)}")
    if orders:
        info["Order By"] = [f"{name} desc" if falls else name for name, falls in orders]
    if given["limit"] is not None:
        info["Limit"] = whole("limit", given["limit"])
    return info


def _names(schema: Schema, texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the schema that stand in expressions."""
    found = itertools.chain.from_iterable(_NAME.finditer(text) for text in texts)
    return tuple(name for one in found if (name := (one[1] or "").replace('""', '"') or one[2] or ""))


def _columns_of(schema: Schema, *given: Iterable[str]) -> tuple[str, ...]:
    """Those of the schema's columns that are among the names, in the order of the schema."""
    wanted = set(itertools.chain.from_iterable(given))
    names = [*(dim.name for dim in schema.dims), *(attr.name for attr in schema.attrs)]
    return tuple(name for name in names if name in wanted)


def _answered(source: Any, question: str, given: Mapping[str, Any]) -> dict[str, int]:
    """Answers a question without keeping or writing the answer; its counters."""
    if question in ("scan", "filter"):
        shared = (
            "box",
            "attrs",
            "where",
            "progress",
            *(("order", "batch_bytes", "damaged", "limit") if question == "scan" else ()),
        )
        options = {"order": "global", **{name: given[name] for name in shared}}
        with closing(source.scan(**options)) as stream:
            for _ in stream:
                pass
            return dict(stream.stats)
    # An answer that would be a stream or an array is looked at as a result.
    options = {name: value for name, value in given.items() if name not in ("stream", "to")}
    answer: Callable[..., Any] = getattr(source, question)
    answer(**options)
    return dict(source.stats)
