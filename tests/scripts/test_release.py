"""A release looks first for what it needs, attests only what its tests let pass, and leaves nothing behind."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import yaml
from script import ROOT

WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())


class TheCommand(unittest.TestCase):
    def test_it_names_a_missing_emulator_before_it_builds(self) -> None:
        (recipe,) = re.findall(r"(?m)^release:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text())
        self.assertIn("scripts/test-arm64 --need", recipe.splitlines()[0])
        with tempfile.TemporaryDirectory() as folder:
            for name in ("bash", "dirname"):
                (Path(folder) / name).symlink_to(f"/usr/bin/{name}")
            uname = Path(folder) / "uname"
            uname.write_text("#!/usr/bin/bash\necho x86_64\n")
            uname.chmod(0o755)
            script = ["/usr/bin/bash", ROOT / "scripts/test-arm64", "--need"]
            asked = subprocess.run(script, env={"PATH": folder}, capture_output=True, text=True, check=False)
        self.assertEqual(asked.returncode, 1)
        self.assertIn("apt install qemu-user-static libc6-arm64-cross", asked.stderr)


class TheWorkflow(unittest.TestCase):
    def test_only_what_all_tests_let_pass_is_attested_and_published(self) -> None:
        jobs = WORKFLOW["jobs"]
        for name, job in jobs.items():
            may_write = {right for right, how in job.get("permissions", {}).items() if how == "write"}
            attests = any("attest" in step.get("uses", "") for step in job["steps"])
            self.assertEqual((bool(may_write), attests), (name == "publish",) * 2, name)
        self.assertEqual({*jobs} - {"publish"}, set(jobs["publish"]["needs"]))

    def test_publishing_job_needs_a_reviewer_and_builds_nothing(self) -> None:
        publish = WORKFLOW["jobs"]["publish"]
        self.assertEqual(publish["environment"], "release")
        commands = " ".join(step.get("run", "") for step in publish["steps"])
        self.assertNotRegex(commands, r"\b(make|pip|npm|cargo|python)\b")

    def test_tag_outside_main_is_refused(self) -> None:
        checkout, check, *_ = WORKFLOW["jobs"]["build"]["steps"]
        self.assertEqual(checkout["with"]["fetch-depth"], 0)
        self.assertIn("merge-base --is-ancestor", check["run"])


if __name__ == "__main__":
    unittest.main()
