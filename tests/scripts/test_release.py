"""A release: its version, template and bill of materials, and the workflow that publishes what its tests let pass."""

import re
import tomllib
import unittest
from datetime import date, timedelta
from typing import Any

import yaml
from script import ROOT  # isort: skip

from release_bundle import measured, sbom, template, version, zipapp
from release_bundle.elf import ARCHITECTURES
from release_bundle.errors import ReleaseError
from samtranslator.yaml_helper import yaml_parse

CHANGELOG = "# Changelog\n\n## [1.10.0] - 2030-02-01\n\n- B\n\n## [1.1.0] - 2030-01-01\n\n- C\n"


def toml(file: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / file).read_text())


class Versions(unittest.TestCase):
    def test_a_version_has_its_own_section_and_no_other(self) -> None:
        self.assertEqual(version.changes(CHANGELOG, "1.1.0"), "## [1.1.0] - 2030-01-01\n\n- C\n")
        with self.assertRaisesRegex(ReleaseError, r"no section of 1\.1: before a release"):
            version.changes(CHANGELOG, "1.1")

    def test_crates_and_command_have_the_one_version(self) -> None:
        packages = toml("Cargo.lock")["package"]
        ours = {package["version"] for package in packages if package["name"].startswith("spillway-")}
        self.assertEqual({toml("pyproject.toml")["project"]["version"], *ours}, {version.of_workspace(ROOT)})

    def test_installation_has_the_files_of_the_zipapp(self) -> None:
        named = toml("pyproject.toml")["tool"]["setuptools"]
        installed = {file for files in named["data-files"].values() for file in files}
        self.assertEqual(installed, {*zipapp.FILES, *(f"{folder}*.yaml" for folder in zipapp.FOLDERS)})
        packages = {file.parent.name for file in (ROOT / "tools").glob("*/__init__.py")} - {"tests"}
        self.assertEqual(set(named["packages"]), packages)

    def test_python_packages_are_locked_in_their_versions(self) -> None:
        def pinned(file: str) -> set[tuple[str, str]]:
            lines = re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)", (ROOT / "tests/bed/aws" / file).read_text(), re.M)
            return {(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in lines}

        self.assertLessEqual(pinned("requirements.txt"), pinned("requirements.lock"), "scripts/lock-python")


class Measured(unittest.TestCase):
    def test_only_a_recent_page_of_this_bench_passes(self) -> None:
        day, present = date(2030, 1, 1), "0123456789abcdef0123456789abcdef01234567"
        good = {"date": str(day), "sources": present[:12], "commit": "commit ba9876543210"}
        last = day + timedelta(days=measured.MOST_DAYS)
        measured.check(good, last, present)
        for words, changed, today in (
            (r"days old.*: `make bench`", {}, last + timedelta(days=1)),
            ("other sources", {"sources": "f" * 12}, last),
            ("other sources", {"sources": ""}, last),
            ("in no commit", {"commit": "commit ba9876543210 **with changes**"}, last),
        ):
            with self.assertRaisesRegex(ReleaseError, words):
                measured.check(good | changed, today, present)


class Bill(unittest.TestCase):
    tree = sbom.crates("spillway-drain v1.0.0 (/somewhere/functions/drain)\nserde v1.2.3\nserde v1.2.3 (*)\n")

    def written(self, *crates: str) -> dict[str, Any]:
        root = {"name": "spillway-drain", "version": "1.0.0", "bom-ref": "root"}
        components = [{"name": name, "version": "1.2.3", "bom-ref": name} for name in crates]
        dependencies = [{"ref": "root", "dependsOn": [*crates]}, *({"ref": name} for name in crates)]
        return {"metadata": {"component": root}, "components": components, "dependencies": dependencies}

    def test_bill_has_the_crates_of_the_function_alone(self) -> None:
        self.assertEqual(sbom.of(self.written("serde", "clap"), self.tree), self.written("serde"))
        with self.assertRaisesRegex(ReleaseError, "spillway-drain: its bill of materials lacks serde 1.2.3"):
            sbom.of(self.written("clap"), self.tree)


class Template(unittest.TestCase):
    def test_only_code_architecture_and_metadata_differ(self) -> None:
        text = (ROOT / "template.yaml").read_text()
        for architecture in ARCHITECTURES:
            ours, theirs = yaml_parse(text), yaml_parse(template.of(text, architecture, "7.8.9"))
            self.assertEqual(theirs["Metadata"]["AWS::ServerlessRepo::Application"]["SemanticVersion"], "7.8.9")
            parameter = theirs["Parameters"]["Architecture"]
            self.assertEqual((parameter["Default"], parameter["AllowedValues"]), (architecture, [architecture]))
            for name in template.binaries(text):
                function = theirs["Resources"][name]
                self.assertNotIn("Metadata", function)
                self.assertTrue(function["Properties"].pop("CodeUri").startswith(f"packages/{architecture}/"))
                del ours["Resources"][name]["Metadata"], ours["Resources"][name]["Properties"]["CodeUri"]
            for document in (ours, theirs):
                del document["Parameters"]["Architecture"], document["Metadata"]["AWS::ServerlessRepo::Application"]
            self.assertEqual(ours, theirs)


class TheWorkflow(unittest.TestCase):
    def test_only_what_all_tests_let_pass_is_published(self) -> None:
        jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
        publish = jobs.pop("publish")
        for name, job in jobs.items():
            self.assertNotIn("permissions", job, name)
        self.assertEqual((set(publish["needs"]), publish["environment"]), (set(jobs), "release"))
        # The job that may write builds nothing.
        commands = " ".join(step.get("run", "") for step in publish["steps"])
        self.assertNotRegex(commands, r"\b(make|pip|npm|cargo|python)\b")
        self.assertIn("merge-base --is-ancestor", jobs["build"]["steps"][1]["run"])


if __name__ == "__main__":
    unittest.main()
