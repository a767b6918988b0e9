"""What a deployment changes and what stays, by SAM's own code: each command that the documents give does what they say."""

import re
import shlex
import tempfile
import tomllib
import unittest
from pathlib import Path
from typing import Any

import botocore.session
import jmespath
from samcli.cli.types import CfnParameterOverridesType
from samcli.commands.deploy.deploy_context import DeployContext
from test_template import PARAMETERS, ROOT, TEMPLATE

import sys

sys.path.insert(0, str(ROOT / "tools"))

from from_nth import sam  # noqa: E402
from from_nth.installation import installation  # noqa: E402
from from_nth.report import convert  # noqa: E402
from from_nth.template import parameters  # noqa: E402

PAGES = sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md"]
NAME = re.compile(r"\b([A-Z][A-Za-z]+)=")


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


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


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

    def test_no_page_has_a_parameter_taken_back_by_leaving_it_out(self) -> None:
        relying = re.compile(r"(?i)deploy (it )?without (it|`\w+`)|take (that|this) parameter out|the next takes it back")
        for page in PAGES:
            with self.subTest(page=page.name):
                self.assertIsNone(relying.search(page.read_text()))

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
                conversion = convert(nth, parameters(), "prod", live="--live" in command)
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


def sentences() -> list[str]:
    """Every sentence that somebody reads who looks for what to do: the pages, the alarms, what the functions say."""
    texts = [page.read_text() for page in PAGES]
    texts += [text["Fn::Sub"] for one in TEMPLATE["Resources"].values() if (text := one.get("Properties", {}).get("AlarmDescription"))]
    for source in [*(ROOT / "crates/doctor/src").rglob("*.rs"), *(ROOT / "crates/drainer/src").rglob("*.rs")]:
        code = re.sub(r"(?m)^\s*//.*$", "", source.read_text())
        texts += [re.sub(r"\\\n\s*", "", text) for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code, re.DOTALL)]
    return [" ".join(one.split()) for text in texts for one in re.split(r"[.:;|](?=\s)|\n\n", text)]


class WhatADeploymentDoesNotChange(unittest.TestCase):
    def test_no_text_has_the_same_template_put_back_what_was_changed_by_hand(self) -> None:
        # CloudFormation compares a template with the one before it: what is deployed again has to be another one.
        relying = re.compile(
            r"(?i)\bdeploy(s|ed|ing)?( \S+){0,3} again\b|\bdeploy\b.*\bputs?\b.*\bback\b|\bdeploy .*which (gives|makes|sets)\b|\bnext deployment\b"
        )
        another = re.compile(r"\b[A-Z][A-Za-z]+=|\bparameters?\b|\brelease|\bversion|of the same template|another value")
        relies = [one for one in sentences() if relying.search(one) and not another.search(one)]
        self.assertEqual(relies, [])

    def test_the_change_set_that_does_it_is_asked_for_as_cloudformation_takes_it(self) -> None:
        page = (ROOT / "docs/troubleshooting.md").read_text()
        (block,) = (one for one in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "REVERT_DRIFT" in one)
        operation = botocore.session.get_session().get_service_model("cloudformation").operation_model("CreateChangeSet")
        members = operation.input_shape.members
        self.assertIn("REVERT_DRIFT", members["DeploymentMode"].enum)
        command = next(one for one in block.replace("\\\n", " ").splitlines() if "create-change-set" in one)
        for option in re.findall(r"--([a-z-]+)", command):
            self.assertIn("".join(word.title() for word in option.split("-")), members)
        # Of a parameter that is not named CloudFormation takes the default.
        (query,) = re.findall(r'"(Stacks\[0\]\.Parameters[^"]*)"', block)
        stack = {"Stacks": [{"Parameters": [{"ParameterKey": name, "ParameterValue": "x"} for name in PARAMETERS]}]}
        self.assertEqual(jmespath.search(query, stack), [f"ParameterKey={name},UsePreviousValue=true" for name in PARAMETERS])


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

    def test_every_list_of_samconfig_in_the_documents_arrives_whole(self) -> None:
        seen = 0
        for page in PAGES:
            for block in blocks(page, "toml") + [re.sub(r"(?m)^  ", "", block) for block in blocks(page, "toml")]:
                with self.subTest(page=page.name):
                    try:
                        overrides = tomllib.loads(block).get("parameter_overrides")
                    except tomllib.TOMLDecodeError:
                        continue
                    if overrides:
                        seen += 1
                        self.assert_arrives(overrides)
        self.assertGreaterEqual(seen, 1)

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
