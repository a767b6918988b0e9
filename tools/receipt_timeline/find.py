"""The receipts in whatever was given.

A receipt may stand alone, in a line of a log behind a time and a stream's name, printed over many lines, in an
answer of AWS as a string, or in a table of comma-separated values.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from cli import Failed

# What the log line has before the receipt, and the function's answer has not.
OF_THE_LOG = ("timestamp", "level", "message")
# An object with two of them means to be a receipt, so that what is missing can be named.
TELLING = {"receipt", "notice", "steps", "ending"}
# CloudWatch exports lines of up to 1 MiB; csv stops at 128 KiB unless told.
csv.field_size_limit(16 * 1024 * 1024)


class NoReceipt(Failed):
    """There is no receipt in what was given."""


def receipts_in(text: str) -> list[dict[str, Any]]:
    objects = [found for value in _values(text) for found in _objects(value)]
    receipts: dict[str, dict[str, Any]] = {}
    for found in objects:
        if "receipt_part" not in found and _means_to_be_a_receipt(found):
            found = _whole(found, objects)
            alone = {name: value for name, value in found.items() if name not in OF_THE_LOG}
            key = json.dumps(alone, sort_keys=True)
            receipts[key] = {**receipts.get(key, {}), **found}
    if not receipts:
        raise NoReceipt(_why_none(text, objects))
    return list(receipts.values())


def _whole(first: dict[str, Any], objects: list[dict[str, Any]]) -> dict[str, Any]:
    """A receipt of several lines, with the pods of all of them that are there, and how many lines these are if some are missing."""
    wanted = first.get("receipt_parts", 1)
    if wanted == 1:
        return first
    # A retry of Lambda's has the same request id.
    whose = (first.get("timestamp"), first.get("request_id"))
    parts = [one for one in objects if "receipt_part" in one and (one.get("timestamp"), one.get("request_id")) == whose]
    others = {one["receipt_part"]: one.get("pods", []) for one in parts}
    pods = [pod for part in sorted(others) for pod in others[part]]
    whole = {name: value for name, value in first.items() if name != "receipt_parts"}
    missing = {} if 1 + len(others) == wanted else {"lines": {"found": 1 + len(others), "of": wanted}}
    return {**whole, **missing, "pods": [*first.get("pods", []), *pods]}


def _means_to_be_a_receipt(found: dict[str, Any]) -> bool:
    return len(TELLING.intersection(found)) >= 2


def _why_none(text: str, objects: list[dict[str, Any]]) -> str:
    if re.search(r'"receipt":\s*\d', text):
        return "the receipt in it is cut off, or is not JSON"
    if not objects:
        return "no receipt in it, nor any JSON"
    return "no receipt in it: there is JSON, but none with the fields receipt, notice, steps, ending and reason"


def _values(text: str) -> Iterator[Any]:
    """Every JSON object and array in the text, whatever stands between them."""
    if '{""' in text:  # The quotes are doubled: comma-separated values.
        yield from (field for row in csv.reader(io.StringIO(text)) for field in row)
        return
    decoder, opening, position = json.JSONDecoder(), re.compile(r"[{\[]"), 0
    while start := opening.search(text, position):
        try:
            value, position = decoder.raw_decode(text, start.start())
            yield value
        except json.JSONDecodeError as error:
            position = max(start.end(), error.pos)
        except RecursionError:  # Nothing of ours is nested like that.
            return


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in a value, also those that are written in its strings."""
    if isinstance(value, dict):
        yield value
        if not _means_to_be_a_receipt(value):
            for inner in value.values():
                yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)
    elif isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            yield from _objects(json.loads(value))
        except (ValueError, RecursionError):
            return
