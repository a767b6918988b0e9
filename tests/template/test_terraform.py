"""The Terraform module is of this stack: its parameters and outputs, and the hooks and entries of tools/spillway enroll.

`make lint` parses and formats it. The provider is not here to validate it.
"""

import re
import sys
import unittest

from bed_aws.template import read
from test_template import PARAMETERS, ROOT

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "scripts")]

from cluster_enrollment import access, groups  # noqa: E402
from release_bundle import plain  # noqa: E402

FILES = {path.name: path.read_text() for path in sorted((ROOT / "terraform").glob("*.tf"))}
MAIN = FILES["main.tf"]
ALL = "\n".join(FILES.values())


def names(pattern: str) -> set[str]:
    return set(re.findall(pattern, ALL, re.M))


def block(kind: str) -> dict[str, str]:
    """The arguments of the resource of that type, as they are written."""
    (body,) = re.findall(rf'^resource "{kind}" "\w+" {{\n(.*?)^}}', MAIN, re.M | re.S)
    return dict(re.findall(r"^  (\w+) += (.+)$", body, re.M))


class TheModule(unittest.TestCase):
    def test_module_uses_what_it_declares(self) -> None:
        self.assertEqual(names(r"\bvar\.(\w+)"), names(r'^variable "(\w+)"'))
        (local,) = re.findall(r"^locals {\n(.*?)^}", MAIN, re.M | re.S)
        self.assertEqual(names(r"\blocal\.(\w+)"), set(re.findall(r"^  (\w+) +=", local, re.M)))

    def test_module_names_parameters_of_the_template(self) -> None:
        written = block("aws_cloudformation_stack")["parameters"]
        given = set(re.findall(r'var\.parameters, "(\w+)"', MAIN) + re.findall(r"(\w+) = ", written))
        self.assertEqual(given, {"Hooks", "HookGroupTag", *plain.PARAMETERS})
        self.assertLessEqual(given, {*PARAMETERS, *plain.PARAMETERS})
        self.assertLessEqual(names(r'outputs\["(\w+)"\]'), set(read(ROOT / "template.yaml")["Outputs"]))

    def test_makes_the_entry_and_the_hook_of_the_enroller(self) -> None:
        self.assertEqual(block("aws_eks_access_entry")["kubernetes_groups"], f'["{access.GROUP}"]')
        hook = block("aws_autoscaling_lifecycle_hook")
        written = (hook["lifecycle_transition"], hook["heartbeat_timeout"])
        self.assertEqual(written, (f'"{groups.TERMINATING}"', str(groups.HEARTBEAT_S)))
        results = {keeps: groups.Group("g", {}, keeps_abandoned=keeps).default_result for keeps in (True, False)}
        self.assertEqual(hook["default_result"], f'each.value ? "{results[True]}" : "{results[False]}"')


if __name__ == "__main__":
    unittest.main()
