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
    "Json": '{"Content-type":"application/json","X-It\'s": "a"}',
    "Text": '{"text":"say \\"{{ .Kind }}\\" Spot=ignore\n\\n {{ if .Pods }}\'{{ end }} ü"}\n',
    "Address": "https://example.com/a?b=c&d='e'#f",
    "Quotes": 'a "b" c',
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
            (Path(folder) / "samconfig.toml").write_text(sam.with_section(own, PARAMETERS))
            read = SamConfig(folder).get_all(["deploy"], "parameters", env="from-nth")
        self.assertEqual(as_sam_reads(read.pop("parameter_overrides")), PARAMETERS)
        default = tomllib.loads(own)["default"]
        self.assertEqual(dict(read), default["global"]["parameters"] | default["deploy"]["parameters"])

    def test_empty_section_is_written(self) -> None:
        self.assertNotIn("parameter_overrides", tomllib.loads(sam.section({}))["from-nth"]["deploy"]["parameters"])

    def test_second_section_replaces_only_the_first(self) -> None:
        own = (ROOT / "samconfig.toml").read_text()
        another = "\n[stage.deploy.parameters]\nstack_name = \"stage\"\n"
        once = sam.with_section(own, {"DryRun": "true", "Clusters": "a"})
        twice = sam.with_section(once + another, {"DryRun": "false"})
        read = tomllib.loads(twice)
        self.assertEqual(read["from-nth"]["deploy"]["parameters"]["parameter_overrides"], ["DryRun=false"])
        self.assertEqual({"default": read["default"]}, {"default": tomllib.loads(own)["default"]})
        self.assertEqual(read["stage"], tomllib.loads(another)["stage"])
        self.assertIn("# What `sam` does here without being told", twice, "comments stay")
        self.assertEqual(sam.with_section(twice, {"DryRun": "false"}), twice)

    def test_missing_file_is_created(self) -> None:
        self.assertEqual(tomllib.loads(sam.with_section("", {}))["version"], 0.1)

    def test_multi_line_text_beside_the_section_is_refused(self) -> None:
        with self.assertRaisesRegex(sam.Unsayable, "by hand"):
            sam.with_section("[a]\nb = '''\n[from-nth.b]\n'''\n", {})

    def test_section_is_read_back(self) -> None:
        self.assertEqual(sam.parameters_of(sam.with_section("", PARAMETERS)), PARAMETERS)
        self.assertIsNone(sam.parameters_of("[a]\n"))

    def test_ambiguous_value_is_refused(self) -> None:
        for value in ("both \\\" and \\'", "ends with \\"):
            with self.subTest(value=value), self.assertRaisesRegex(sam.Unsayable, "ManagedTag"):
                sam.overrides({"ManagedTag": value})
