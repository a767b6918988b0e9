"""SAM reads back exactly what was written: on its command line, and from samconfig.toml."""

import shlex
import tempfile
import tomllib
import unittest
from pathlib import Path

from from_nth import sam
from samcli.cli.types import CfnParameterOverridesType
from samcli.lib.config.samconfig import SamConfig

ROOT = Path(__file__).parents[2]
PARAMETERS = {
    "Spot": "cordon",
    "ManagedTag": "nth/prod=yes",
    "NodeSelector": "a=b,c in (d, e)",
    "WebhookHeaders": '{"Content-type":"application/json","X-It\'s": "a"}',
    "WebhookTemplate": '{"text":"say \\"{{ .Kind }}\\" Spot=ignore\n\\n {{ if .Pods }}\'{{ end }} ü"}\n',
    "WebhookUrl": "https://example.com/a?b=c&d='e'#f",
    "WebhookProxy": 'a "b" c',
    "Nothing": "",
}


def as_sam_reads(words: list[str]) -> dict[str, str]:
    return CfnParameterOverridesType().convert(tuple(words), None, None)


class Sam(unittest.TestCase):
    def test_reads_the_words_of_a_shell(self) -> None:
        option, *words = shlex.split(sam.overrides(PARAMETERS))
        self.assertEqual(option, "--parameter-overrides")
        self.assertEqual(as_sam_reads(words), PARAMETERS)

    def test_reads_the_section_behind_the_repositorys_own(self) -> None:
        own = (ROOT / "samconfig.toml").read_text()
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "samconfig.toml").write_text(own + sam.section(PARAMETERS))
            read = SamConfig(folder).get_all(["deploy"], "parameters", env="from-nth")
        self.assertEqual(as_sam_reads(read.pop("parameter_overrides")), PARAMETERS)
        default = tomllib.loads(own)["default"]
        self.assertEqual(dict(read), default["global"]["parameters"] | default["deploy"]["parameters"])

    def test_a_section_without_parameters_is_one_all_the_same(self) -> None:
        self.assertNotIn("parameter_overrides", tomllib.loads(sam.section({}))["from-nth"]["deploy"]["parameters"])

    def test_a_value_that_sam_would_read_otherwise_is_refused(self) -> None:
        for value in ("both \\\" and \\'", "ends with \\"):
            with self.subTest(value=value), self.assertRaisesRegex(sam.Unsayable, "WebhookTemplate"):
                sam.overrides({"WebhookTemplate": value})
