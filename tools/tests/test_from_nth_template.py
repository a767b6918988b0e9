"""template.yaml is read without a YAML library, and read right."""

import unittest

import yaml
from cli import files
from from_nth.template import parameter, parameters


class Loader(yaml.CSafeLoader):
    """Passes CloudFormation's own tags over."""


Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


class TheReader(unittest.TestCase):
    def test_finds_what_a_yaml_library_finds(self) -> None:
        document = yaml.load((files.root() / "template.yaml").read_text(), Loader)["Parameters"]
        read = parameters()
        self.assertEqual(list(read), list(document))
        for name, expected in document.items():
            with self.subTest(parameter=name):
                self.assertEqual(read[name].default, str(expected["Default"]) if "Default" in expected else None)
                self.assertEqual(list(read[name].allowed), [str(word) for word in expected.get("AllowedValues", [])])
                self.assertEqual(read[name].pattern, expected.get("AllowedPattern"))
                self.assertEqual([read[name].least, read[name].most], [expected.get("MinValue"), expected.get("MaxValue")])
                self.assertEqual(read[name].longest, expected.get("MaxLength"))

    def test_reads_what_another_hand_might_write(self) -> None:
        body = "    Description: >-\n      one: two\n    Default: 'it''s'\n"
        body += "    AllowedValues:\n      - 'it''s'\n      - \"b\"\n      - c\n    Type: String\n"
        read = parameter(body)
        self.assertEqual((read.default, read.allowed), ("it's", ("it's", "b", "c")))
        self.assertEqual(parameter("    AllowedValues: [a,\n      b]\n").allowed, ("a", "b"))

    def test_refused_value_has_a_reason(self) -> None:
        read = parameters()
        self.assertIsNone(read["Launch"].refuses("off"))
        self.assertIn("CONTINUE", read["Launch"].refuses("explode") or "")
        self.assertIn("60 to 172800", read["HookMaxWaitS"].refuses("59") or "")
        self.assertIsNone(read["DrainOn"].refuses("spot,terminate"))
        self.assertIn("it takes what", read["DrainOn"].refuses("spot,sport") or "")
        self.assertIn("4096 bytes", read["NodeSelector"].refuses("n" * 4097) or "")
