"""The bill of materials has the crates of the function, and no others."""

import unittest
from typing import Any

from script import ROOT  # noqa: F401  # isort: skip

from release_bundle import sbom
from release_bundle.errors import ReleaseError


def component(name: str, version: str) -> dict[str, str]:
    return {"name": name, "version": version, "bom-ref": f"{name}@{version}"}


def written(*crates: str) -> dict[str, Any]:
    root = component("spillway-drain", "1.0.0")
    components = [component(name, "1.2.3") for name in crates]
    refs = [one["bom-ref"] for one in components]
    dependencies = [{"ref": root["bom-ref"], "dependsOn": refs}, *({"ref": ref} for ref in refs)]
    return {"metadata": {"component": root}, "components": components, "dependencies": dependencies}


class TheBill(unittest.TestCase):
    tree = sbom.crates("spillway-drain v1.0.0 (/somewhere/functions/drain)\nserde v1.2.3\nserde v1.2.3 (*)\n")

    def test_a_crate_is_its_name_and_version(self) -> None:
        self.assertEqual(self.tree, {("spillway-drain", "1.0.0"), ("serde", "1.2.3")})

    def test_crates_of_the_test_bed_are_left_out(self) -> None:
        self.assertEqual(sbom.of(written("serde", "clap"), self.tree), written("serde"))

    def test_bill_without_a_crate_is_refused(self) -> None:
        with self.assertRaisesRegex(ReleaseError, "spillway-drain: its bill of materials lacks serde 1.2.3"):
            sbom.of(written("clap"), self.tree)

    def test_it_does_not_tell_where_it_was_made(self) -> None:
        self.assertEqual(
            sbom.without_place("path+file:///home/me/x/crates/eks#1", "/home/me/x"),
            "path+file:///spillway/crates/eks#1",
        )
