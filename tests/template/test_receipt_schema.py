"""The receipt's schema: the sample in the documents and the one in the function's own test are as it says."""

import json
import re
import unittest
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/receipt.schema.json").read_text())
SNAPSHOTS = ROOT / "crates/drainer/src/publish/snapshots"


def problems(receipt: dict) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(receipt)]


class TheSchema(unittest.TestCase):
    def test_it_is_a_schema(self) -> None:
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_the_sample_in_the_documents_is_a_receipt(self) -> None:
        page = (ROOT / "docs/receipt.md").read_text()
        sample = json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL).group(1))
        self.assertEqual(problems(sample), [])

    def test_what_the_function_writes_is_a_receipt(self) -> None:
        written = ["receipt_of_a_drain_as_the_log_has_it", "receipt_of_a_drain_that_is_continued", "event_of_a_drain_that_has_begun"]
        for name in written:
            snapshot = SNAPSHOTS / f"spillway_drainer__publish__tests__the_{name}.snap"
            receipt = json.loads(snapshot.read_text().split("---\n", 2)[2])
            self.assertEqual(problems(receipt), [], name)
        self.assertNotEqual(problems(receipt | {"surprise": 1}), [])
        self.assertNotEqual(problems(receipt | {"ending": "lost"}), [])


if __name__ == "__main__":
    unittest.main()
