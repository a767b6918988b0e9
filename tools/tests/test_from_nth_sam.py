"""SAM reads back exactly what was written: on its command line, and from samconfig.toml."""

import shlex
import tempfile
import tomllib
import unittest
from pathlib import Path

from from_nth import sam
from samcli.cli.types import CfnParameterOverridesType
from samcli.lib.config.samconfig import SamConfig

OWN = (Path(__file__).parents[2] / "samconfig.toml").read_text()
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
        self.assertEqual((option, as_sam_reads(words)), ("--parameter-overrides", PARAMETERS))

    def test_reads_the_section_behind_the_repositorys_own(self) -> None:
        written = sam.with_section(OWN, PARAMETERS)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "samconfig.toml").write_text(written)
            read = SamConfig(folder).get_all(["deploy"], "parameters", env="from-nth")
        self.assertEqual(as_sam_reads(read.pop("parameter_overrides")), PARAMETERS)
        default = tomllib.loads(OWN)["default"]
        self.assertEqual(dict(read), default["global"]["parameters"] | default["deploy"]["parameters"])
        self.assertEqual((sam.parameters_of(written), sam.parameters_of(OWN)), (PARAMETERS, None))

    def test_second_section_replaces_only_the_first(self) -> None:
        another = "\n[stage.deploy.parameters]\nstack_name = \"stage\"\n"
        once = sam.with_section(OWN, {"DryRun": "true", "Clusters": "a"})
        twice = sam.with_section(once + another, {"DryRun": "false"})
        wanted = {**tomllib.loads(OWN + another), **tomllib.loads(sam.section({"DryRun": "false"}))}
        self.assertEqual(tomllib.loads(twice), wanted)
        self.assertIn("# What `sam` does here without being told", twice, "comments stay")
        self.assertEqual(sam.with_section(twice, {"DryRun": "false"}), twice)

    def test_missing_file_is_created(self) -> None:
        self.assertEqual(tomllib.loads(sam.with_section("", {}))["version"], 0.1)

    def test_what_cannot_be_written_is_refused(self) -> None:
        for value in ("both \\\" and \\'", "ends with \\"):
            with self.subTest(value=value), self.assertRaisesRegex(sam.Unsayable, "ManagedTag"):
                sam.overrides({"ManagedTag": value})
        with self.assertRaisesRegex(sam.Unsayable, "by hand"):
            sam.with_section("[a]\nb = '''\n[from-nth.b]\n'''\n", {})
