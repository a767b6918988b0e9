"""What is no receipt is refused by naming the field."""

from __future__ import annotations

import json
import unittest
from dataclasses import fields
from pathlib import Path
from typing import Any

from receipt_timeline.receipt import Earlier, Hook, NotAReceipt, Pod, Receipt, Step, read

from . import receipts

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/receipt.schema.json").read_text())
DEFINITIONS = {Receipt: "", Step: "Step", Pod: "PodRecord", Hook: "HookRecord", Earlier: "Earlier"}
TYPES = {"str": "string", "datetime": "string", "int": "integer", "bool": "boolean", "dict": "object", "tuple": "array", "Hook": "object", "Fate": "string"}


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that a `$ref` names, or the first alternative."""
    schema = schema.get("anyOf", [schema])[0]
    found: dict[str, Any] = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return {**found.get("oneOf", [{}])[0], **found}


class Refused(unittest.TestCase):
    def because(self, why: str, **fields: Any) -> None:
        with self.assertRaises(NotAReceipt) as refused:
            read({**receipts.drained(), **fields})
        self.assertEqual(str(refused.exception), why)

    def test_missing_fields_are_named_with_their_places(self) -> None:
        with self.assertRaises(NotAReceipt) as refused:
            read({"receipt": 2, "notice": {}, "ending": "drained"})
        self.assertEqual(str(refused.exception), "not a receipt: `steps` and `reason` are missing")
        self.because("not a receipt: `pods[0].fate` is missing", pods=[{"pod": "shop/web-0"}])
        self.because("not a receipt: `steps[1].at_ms` is missing", steps=[{"step": "begun", "at_ms": 1}, {"step": "claimed"}])

    def test_what_is_of_another_kind_is_shown(self) -> None:
        self.because("not a receipt: `reason` is 7, not a text", reason=7)
        self.because("not a receipt: `pods` is {}, not a list", pods={})
        self.because("not a receipt: pods[0] is 'web-0', not an object", pods=["web-0"])
        self.because("not a receipt: `steps[0].at_ms` is True, not a whole number that can be drawn", steps=[{"step": "begun", "at_ms": True}])
        self.because("not a receipt: `steps[0].at_ms` is 1e+300, not a whole number", steps=[{"step": "begun", "at_ms": 1e300}])
        self.because("not a receipt: `notice.time` is 'yesterday', not a time such as 2026-11-21T03:12:00Z", notice={"time": "yesterday"})
        self.because(
            "not a receipt: `pods[0].fate` is 'left', not one of clean, clamped, forced, stayed, returned, "
            "remaining, lost, unconfirmed, would-leave and would-be-blocked",
            pods=[{"pod": "shop/web-0", "fate": "left"}],
        )

    def test_unusable_time_is_refused(self) -> None:
        for time in ("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-02-30T00:00:00Z"):
            with self.assertRaisesRegex(NotAReceipt, "notice.time"):
                read(receipts.receipt(notice={"time": time}))

    def test_another_version_is_not_guessed_at(self) -> None:
        for version in (1, 3):
            self.because(f"a receipt of version {version}; this program knows version 2", receipt=version)


class Read(unittest.TestCase):
    def test_every_field_is_one_of_the_schema(self) -> None:
        for kind, definition in DEFINITIONS.items():
            for one in (one for one in fields(kind) if one.name != "lines"):  # Counted by the reader.
                found = SCHEMA["$defs"][definition] if definition else SCHEMA
                for name in one.metadata.get("key", one.name).split("."):
                    self.assertIn(name, found["properties"], f"{kind.__name__}.{one.name}")
                    found = resolved(found["properties"][name])
                declared = one.type.replace(" | None", "").partition("[")[0]
                types = found["type"] if isinstance(found.get("type"), list) else [found.get("type")]
                self.assertIn(TYPES[declared], types, f"{kind.__name__}.{one.name}")

    def test_every_fate_of_the_schema_is_known(self) -> None:
        fates = [fate["const"] for fate in SCHEMA["$defs"]["Fate"]["oneOf"]]
        for fate in fates:
            (pod,) = read(receipts.receipt(pods=[receipts.pod("shop/web-0", fate)])).pods
            self.assertEqual(pod.fate.value, fate)

    def test_unknown_field_is_ignored(self) -> None:
        self.assertEqual(read({**receipts.drained(), "news": 1}), read(receipts.drained()))


if __name__ == "__main__":
    unittest.main()
