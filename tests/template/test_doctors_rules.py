"""The doctor knows the patterns of the template's rules: crates/doctor/src/account/rules.json, which this file writes.

    PYTHONPATH=tests/bed/aws python tests/template/test_doctors_rules.py --write
"""

import json
import sys
import unittest

from test_template import ROOT, of_type

FILE = ROOT / "crates/doctor/src/account/rules.json"


def patterns() -> str:
    written = [json.dumps(rule["EventPattern"]) for rule in of_type("AWS::Events::Rule").values() if "EventPattern" in rule]
    return "[\n" + ",\n".join(sorted(written)) + "\n]\n"


class TheDoctorsRules(unittest.TestCase):
    def test_they_are_the_templates(self) -> None:
        self.assertTrue(FILE.read_text() == patterns(), f"write them again: {__doc__}")


if __name__ == "__main__":
    if "--write" in sys.argv:
        FILE.write_text(patterns())
    else:
        unittest.main()
