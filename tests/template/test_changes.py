"""What a deployment changes and what stays, by SAM's own code: each command that the documents give does what they say."""

import re
import shlex
import tempfile
import tomllib
import unittest
from pathlib import Path
from typing import Any

from samcli.cli.types import CfnParameterOverridesType
from samcli.commands.deploy.deploy_context import DeployContext
from test_template import PARAMETERS, ROOT, TEMPLATE

import sys

sys.path.insert(0, str(ROOT / "tools"))

from from_nth import sam  # noqa: E402
from from_nth.installation import installation  # noqa: E402
from from_nth.report import convert  # noqa: E402

PAGES = sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md"]


def parsed(words: list[str]) -> dict[str, str]:
    """What SAM reads in words of --parameter-overrides, or in a list of samconfig.toml."""
    return CfnParameterOverridesType().convert(tuple(words), None, None)


def deployed(before: dict[str, str], overrides: dict[str, str]) -> dict[str, str]:
    """A stack's parameters after a deployment with these overrides."""
    after = {name: str(parameter["Default"]) for name, parameter in PARAMETERS.items()} | before
    for change in DeployContext.merge_parameters({"Parameters": TEMPLATE["Parameters"]}, overrides):
        if not change.get("UsePreviousValue"):
            after[change["ParameterKey"]] = change["ParameterValue"]
    return after


def commands(page: Path) -> list[list[str]]:
    """The words of every `sam deploy` on a page, in blocks and in sentences, without their comments."""
    text = page.read_text().replace("\\\n", " ")
    found = re.findall(r"^\s*(?:\S.* && )?(sam deploy [^`\n]*?--parameter-overrides[^`\n]*)$", text, re.MULTILINE)
    found += re.findall(r"`(sam deploy [^`]*--parameter-overrides[^`]*)`", text)
    return [shlex.split(one, comments=True) for one in found]


def overrides_of(command: list[str]) -> list[str]:
    words = command[command.index("--parameter-overrides") + 1 :]
    options = [index for index, word in enumerate(words) if word.startswith("--")]
    return words[: options[0]] if options else words


class WhatADeploymentChanges(unittest.TestCase):
    def test_a_parameter_that_is_left_out_keeps_its_value(self) -> None:
        # So no page may rely on leaving one out.
        self.assertEqual(deployed({"DryRun": "true"}, {"HookMaxWaitS": "7200"})["DryRun"], "true")

    def test_each_step_of_a_migration_leads_where_the_guide_says(self) -> None:
        page = (ROOT / "docs/from-nth.md").read_text()
        steps = re.findall(r"^(tools/spillway from-nth --samconfig .*)\n(sam deploy --config-env from-nth) +# (.*)\n(?:tools/spillway enroll .*\n)?tools/spillway doctor", page, re.M)
        self.assertEqual(len(steps), 2, "a dry run, then live, and the doctor after each")
        nth = installation({"enableSqsTerminationDraining": True, "taintNode": True})
        stack: dict[str, str] = {}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "samconfig.toml"
            file.write_text((ROOT / "samconfig.toml").read_text())
            for command, _, promised in steps:
                conversion = convert(nth, "prod", live="--live" in command)
                file.write_text(sam.with_section(file.read_text(), conversion.parameters))
                section = tomllib.loads(file.read_text())["from-nth"]["deploy"]["parameters"]
                stack = deployed(stack, parsed(section["parameter_overrides"]))
                self.assertEqual({**stack, **parsed(promised.split())}, stack)
                self.assertEqual((stack["Taints"], stack["Clusters"]), ("nth", "prod"))
        self.assertEqual(stack["DryRun"], "false")
        self.assertLess(page.index(steps[1][0]), page.index("aws autoscaling delete-tags"), "live before NTH's tag goes")
        (emptied,) = [command for command in commands(ROOT / "docs/from-nth.md") if 'ManagedTag=""' in command]
        self.assertEqual(deployed(stack, parsed(overrides_of(emptied)))["ManagedTag"], "")
        (back,) = [command for command in commands(ROOT / "docs/from-nth.md") if "DryRun=true" in command]
        self.assertEqual(deployed(stack, parsed(overrides_of(back))), stack | {"DryRun": "true"})


class WhatSamReads(unittest.TestCase):
    def test_a_blank_without_quotes_cuts_a_value_off(self) -> None:
        # Why the pages quote; and why the template refuses a list that ends with a comma.
        self.assertEqual(parsed(["Clusters=a, b"]), {"Clusters": "a,"})

    def test_every_command_of_the_documents_arrives_whole(self) -> None:
        seen = 0
        for page in PAGES:
            for command in commands(page):
                words = overrides_of(command)
                if any("…" in word for word in words):
                    continue
                seen += 1
                with self.subTest(page=page.name, words=words):
                    self.assert_arrives(words)
        self.assertGreaterEqual(seen, 8)

    def assert_arrives(self, words: list[str]) -> None:
        read = parsed(words)
        # What a person means by the words: everything behind the first equals sign, without its quotes.
        meant = {name: value.strip('"') for name, _, value in (word.partition("=") for word in words)}
        self.assertEqual(read, meant)
        for name, value in read.items():
            self.assertIn(name, PARAMETERS)
            self.assert_accepted(name, value)

    def assert_accepted(self, name: str, value: str) -> None:
        parameter: dict[str, Any] = PARAMETERS[name]
        # CLUSTER, ARN and the like are to be filled in.
        if value.isupper() or "_ARN" in value or "$" in value:
            return
        if "AllowedValues" in parameter:
            self.assertIn(value, [str(one) for one in parameter["AllowedValues"]])
        if "AllowedPattern" in parameter:
            values = value.split(",") if parameter["Type"] == "CommaDelimitedList" else [value]
            for one in values:
                self.assertRegex(one, re.compile(parameter["AllowedPattern"]))


if __name__ == "__main__":
    unittest.main()
