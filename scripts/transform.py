#!/usr/bin/env python3
"""Prints the CloudFormation template that the SAM transform makes of template.yaml, without AWS.

usage: scripts/transform.py [TEMPLATE]        (needs the project's Python environment)
"""

import json
import sys
from pathlib import Path
from typing import Any

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

REGION = "us-east-1"
# The transform takes code from S3 only; `sam package` would have put it there.
CODE = "s3://bucket/code.zip"


def transform(template: Path) -> dict[str, Any]:
    return transformed(template.read_text())


def transformed(template: str) -> dict[str, Any]:
    """The same of a template's text."""
    document = yaml_parse(template)
    for resource in document["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = CODE
    # No AWS managed policy is used; to look one up, the transform would need credentials.
    translator = Translator(managed_policy_map={}, sam_parser=Parser(), boto_session=boto3.Session(region_name=REGION))
    # A parameter stays one: with its default the transform would replace it in a few properties, such as a function's role.
    parameters = {name: {"Ref": name} for name in document.get("Parameters", {})}
    return translator.translate(document, parameter_values=parameters)


if __name__ == "__main__":
    root = Path(__file__).parents[1]
    print(json.dumps(transform(Path(*sys.argv[1:2] or [root / "template.yaml"])), indent=2))
