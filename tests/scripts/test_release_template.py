"""A release's template is the project's own but for where the functions' code comes from."""

import copy
import unittest
from typing import Any

from script import ROOT  # isort: skip

from release_bundle import template
from release_bundle.elf import ARCHITECTURES
from release_bundle.errors import ReleaseError
from samtranslator.yaml_helper import yaml_parse

VERSION = "7.8.9"
WRITTEN = (ROOT / "template.yaml").read_text()
RELEASED = {architecture: yaml_parse(template.of(WRITTEN, architecture, VERSION)) for architecture in ARCHITECTURES}


def parsed(architecture: str) -> Any:
    return copy.deepcopy(RELEASED[architecture])


class TheTemplates(unittest.TestCase):
    def test_only_code_architecture_and_metadata_differ(self) -> None:
        for architecture in ARCHITECTURES:
            ours, theirs = yaml_parse(WRITTEN), parsed(architecture)
            for document in (ours, theirs):
                for logical_id in template.binaries(WRITTEN):
                    document["Resources"][logical_id].pop("Metadata", None)
                    del document["Resources"][logical_id]["Properties"]["CodeUri"]
                del document["Parameters"]["Architecture"]
                document.get("Metadata", {}).pop("AWS::ServerlessRepo::Application", None)
            # A template without metadata of its own has none but what was taken out.
            self.assertEqual({"Metadata": {}, **ours}, theirs)

    def test_template_takes_only_its_architecture(self) -> None:
        for architecture, other in (("arm64", "template-x86_64.yaml"), ("x86_64", "template.yaml")):
            parameter = parsed(architecture)["Parameters"]["Architecture"]
            self.assertEqual((parameter["Default"], parameter["AllowedValues"]), (architecture, [architecture]))
            self.assertIn(other, parameter["ConstraintDescription"])

    def test_it_builds_nothing(self) -> None:
        for architecture in ARCHITECTURES:
            for logical_id in template.binaries(WRITTEN):
                function = parsed(architecture)["Resources"][logical_id]
                self.assertNotIn("Metadata", function)
                self.assertTrue(function["Properties"]["CodeUri"].startswith(f"packages/{architecture}/"))

    def test_the_serverless_application_repository_gets_the_version(self) -> None:
        self.assertEqual(parsed("arm64")["Metadata"]["AWS::ServerlessRepo::Application"]["SemanticVersion"], VERSION)

    def test_function_without_binary_is_refused(self) -> None:
        with self.assertRaisesRegex(ReleaseError, "Drain does not say which binary it is"):
            template.binaries(WRITTEN.replace("Binary: spillway-drain", "Other: spillway-drain"))
