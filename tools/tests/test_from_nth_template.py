"""template.yaml is read without a YAML library, and read right."""

import unittest

import yaml
from cli import files
from from_nth.template import parameters, refusal


class Loader(yaml.CSafeLoader):
    """Passes CloudFormation's own tags over."""


Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


class TheReader(unittest.TestCase):
    def test_finds_what_a_yaml_library_finds(self) -> None:
        document = yaml.load((files.root() / "template.yaml").read_text(), Loader)["Parameters"]
        read = parameters()
        self.assertEqual(list(read), list(document))
        for name, expected in document.items():
            for key in ("Type", "Default", "AllowedValues", "AllowedPattern", "MinValue", "MaxValue", "MinLength", "MaxLength"):
                value = expected.get(key)
                as_text = [str(word) for word in value] if isinstance(value, list) else None if value is None else str(value)
                self.assertEqual(read[name].get(key), as_text, (name, key))

    def test_refused_value_has_a_reason(self) -> None:
        for name, value, why in (
            ("Launch", "off", None),
            ("Launch", "explode", "it takes off or ABANDON or CONTINUE"),
            ("HookMaxWaitS", "59", "it takes 60 to 172800"),
            ("HookMaxWaitS", "abc", "it takes 60 to 172800"),
            ("DrainOn", "spot,terminate", None),
            ("DrainOn", "spot,sport", "it takes what "),
            ("NodeSelector", "n" * 4097, "4096 bytes"),
        ):
            found = refusal(value, parameters()[name])
            self.assertTrue(found is None if why is None else why in (found or ""), (name, value[:9], found))
