"""The template of a release in plain CloudFormation, for what takes no transform: StackSets that AWS Organizations manages.

SAM's own translation, made while a release is packed. Who deploys it names the bucket in which the packages are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from transform import transformed  # noqa: E402

from release_bundle import template  # noqa: E402

# The parameters that it has beyond the other's.
PARAMETERS = {
    "CodeBucket": {
        "Description": "S3 bucket of this Region that has the packages of the release.",
        "Type": "String",
        "AllowedPattern": "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
        "ConstraintDescription": "the name of an S3 bucket",
    },
    "CodePrefix": {
        "Description": "What stands before packages/ in the keys of that bucket, with a slash at its end. Empty = nothing.",
        "Type": "String",
        "Default": "",
        "AllowedPattern": "^([A-Za-z0-9!_.*'()/-]+/)?$",
        "ConstraintDescription": "a prefix that ends with /, or nothing",
    },
}
GROUP = {"Label": {"default": "Where is the code?"}, "Parameters": list(PARAMETERS)}


def name(architecture: str) -> str:
    return template.name(architecture).replace("template", "template-plain").replace(".yaml", ".json")


def of(released: str) -> str:
    """The plain form of a template that `template.of` has made."""
    plain = transformed(released)
    for function, package in template.packages(released).items():
        key = {"Fn::Sub": f"${{CodePrefix}}{package}"}
        plain["Resources"][function]["Properties"]["Code"] = {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": key}
    plain["Parameters"] = PARAMETERS | plain["Parameters"]
    plain["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"].insert(0, GROUP)
    return json.dumps(plain, indent=1) + "\n"
