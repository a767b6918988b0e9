"""Each `sam deploy` of the pages and of `tools/spillway from-nth`, read by SAM's own code, gives what it says."""

import re
import shlex
import sys
import tomllib
import unittest
from pathlib import Path

from samcli.cli.types import CfnParameterOverridesType
from samcli.commands.deploy.deploy_context import DeployContext
from test_template import PARAMETERS, ROOT, TEMPLATE

sys.path.insert(0, str(ROOT / "tools"))

from from_nth import sam  # noqa: E402
from from_nth.installation import installation  # noqa: E402
from from_nth.report import convert  # noqa: E402

PAGES = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]


def parsed(words: list[str]) -> dict[str, str]:
    """What SAM reads in words of --parameter-overrides, or in a list of samconfig.toml."""
    return CfnParameterOverridesType().convert(tuple(words), None, None)


def overrides(page: Path) -> list[list[str]]:
    """The parameters of every `sam deploy` on a page, in blocks and in sentences."""
    text = page.read_text().replace("\\\n", " ")
    found = re.findall(r"sam deploy [^`\n]*?--parameter-overrides([^`\n]*?)(?: --[^`\n]*)?$", text, re.MULTILINE)
    found += re.findall(r"`sam deploy [^`]*--parameter-overrides([^`]*?)(?: --[^`]*)?`", text)
    return [shlex.split(one, comments=True) for one in found if "…" not in one]


class WhatSamReads(unittest.TestCase):
    def test_migration_is_a_dry_run_then_live(self) -> None:
        nth = installation({"enableSqsTerminationDraining": True, "taintNode": True})
        stack: dict[str, str] = {}
        for live in (False, True):
            conversion = convert(nth, "prod", live=live)
            file = sam.with_section((ROOT / "samconfig.toml").read_text(), conversion.parameters)
            given = parsed(tomllib.loads(file)["from-nth"]["deploy"]["parameters"]["parameter_overrides"])
            # A parameter that is left out keeps its value.
            for change in DeployContext.merge_parameters({"Parameters": TEMPLATE["Parameters"]}, given):
                if not change.get("UsePreviousValue"):
                    stack[change["ParameterKey"]] = change["ParameterValue"]
            self.assertEqual((stack["Taints"], stack["Clusters"]), ("nth", "prod"))
            self.assertEqual(stack["DryRun"], "false" if live else "true")

    def test_every_command_of_the_pages_arrives_whole(self) -> None:
        # A blank without quotes cuts a value off.
        self.assertEqual(parsed(["Clusters=a, b"]), {"Clusters": "a,"})
        commands = [(page.name, words) for page in PAGES for words in overrides(page)]
        self.assertGreaterEqual(len(commands), 8)
        for page, words in commands:
            with self.subTest(page=page, words=words):
                # What a person means: everything behind the first equals sign, without its quotes.
                meant = {name: value.strip('"') for name, _, value in (word.partition("=") for word in words)}
                self.assertEqual(parsed(words), meant)
                for name, value in meant.items():
                    self.assert_accepted(name, value)

    def assert_accepted(self, name: str, value: str) -> None:
        parameter = PARAMETERS[name]
        # CLUSTER, ARN and the like are to be filled in.
        if value.isupper() or "_ARN" in value or "$" in value:
            return
        if "AllowedValues" in parameter:
            self.assertIn(value, [str(one) for one in parameter["AllowedValues"]])
        for one in value.split(",") if parameter["Type"] == "CommaDelimitedList" else [value]:
            self.assertRegex(one, parameter.get("AllowedPattern", "^"))


if __name__ == "__main__":
    unittest.main()
