"""deploy/ as kustomize takes it: the rights and nothing optional. docs/install-gitops.md"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import yaml
from test_template import ROOT, objects

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spillway"
KUBECTL = Path(os.environ.get("SPILLWAY_BED_BIN") or CACHE / "control-plane/bin") / "kubectl"


def built(folder: Path) -> list[dict[str, Any]]:
    ran = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True, check=True)
    return sorted(yaml.safe_load_all(ran.stdout), key=name)


def name(thing: dict[str, Any]) -> tuple[str, str]:
    return thing["kind"], thing["metadata"]["name"]


class TheKustomization(unittest.TestCase):
    def test_folder_for_kubectl_has_nothing_optional(self) -> None:
        self.assertEqual([path.name for path in (ROOT / "deploy").glob("*.[jy]*")], ["rbac.yaml"])
        self.assertEqual(built(ROOT / "deploy"), sorted(objects("rbac"), key=name))

    def test_folder_of_the_page_adds_an_optional_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (own := Path(folder) / "clusters/prod/spillway").mkdir(parents=True)
            shutil.copytree(ROOT / "deploy", Path(folder) / "spillway/deploy")
            shutil.copy(ROOT / "deploy/optional/flow-control.yaml", own)
            page = (ROOT / "docs/install-gitops.md").read_text()
            (text,) = re.findall(r"```yaml\n(# clusters/prod/.*?)```", page, re.DOTALL)
            (own / "kustomization.yaml").write_text(text)
            self.assertEqual(built(own), sorted(objects("rbac") + objects("optional/flow-control"), key=name))


if __name__ == "__main__":
    unittest.main()
