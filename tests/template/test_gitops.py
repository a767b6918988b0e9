"""deploy/ as kustomize takes it: the rights and nothing optional, with kubectl's own kustomize. docs/install-gitops.md"""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import yaml
from test_template import ROOT

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spillway"
KUBECTL = Path(os.environ.get("SPILLWAY_BED_BIN") or CACHE / "control-plane/bin") / "kubectl"
PAGE = (ROOT / "docs/install-gitops.md").read_text()


def built(folder: Path) -> list[dict[str, Any]]:
    ran = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(ran.stdout))


def objects(path: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / path).read_text()))


def by_name(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda one: (one["kind"], one["metadata"]["name"]))


class TheKustomization(unittest.TestCase):
    def test_folder_for_kubectl_has_nothing_optional(self) -> None:
        applied = [one for file in sorted((ROOT / "deploy").glob("*.yaml")) for one in objects(f"deploy/{file.name}")]
        self.assertEqual(by_name(built(ROOT / "deploy")), by_name(applied))

    def test_of_the_page_adds_a_file_of_the_optional_ones(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (own := Path(folder) / "clusters/prod/spillway").mkdir(parents=True)
            (Path(folder) / "spillway").mkdir()
            subprocess.run(["cp", "-r", ROOT / "deploy", Path(folder) / "spillway/deploy"], check=True)
            (text,) = re.findall(r"```yaml\n(# clusters/prod/.*?)```", PAGE, re.DOTALL)
            (own / "kustomization.yaml").write_text(text)
            (own / "flow-control.yaml").write_text((ROOT / "deploy/optional/flow-control.yaml").read_text())
            wanted = [*objects("deploy/rbac.yaml"), *objects("deploy/optional/flow-control.yaml")]
            self.assertEqual(by_name(built(own)), by_name(wanted))

    def test_is_what_the_manifests_of_the_page_lead_to(self) -> None:
        manifests = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(apiVersion.*?)```", PAGE, re.DOTALL)]
        paths = [one["spec"].get("path") or one["spec"]["source"]["path"] for one in manifests]
        self.assertEqual([path.removeprefix("./") for path in paths], ["spillway/deploy"] * 2)


if __name__ == "__main__":
    unittest.main()
