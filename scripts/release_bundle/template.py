"""The template of a release: template.yaml, with a ready package for each function in place of a build.

One for each architecture. `sam package` uploads a package only where `CodeUri` is a plain path: it passes over
`!If` and `!FindInMap`, and CloudFormation would get a path of the user's disk. So the choice is the template's
name, and a template takes no other architecture than its own.
"""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML

from release_bundle.elf import ARCHITECTURES
from release_bundle.errors import ReleaseError

# What `sam deploy` takes when nothing is said.
DEFAULT = "arm64"
FUNCTION = "AWS::Serverless::Function"


def name(architecture: str) -> str:
    return "template.yaml" if architecture == DEFAULT else f"template-{architecture}.yaml"


def package(architecture: str, binary: str) -> str:
    """Where a bundle has the package of a function, by its binary."""
    return f"packages/{architecture}/{binary}.zip"


def binaries(template: str) -> dict[str, str]:
    """The functions of template.yaml by their logical id, each with the name of its binary."""
    return _binaries(_yaml().load(template))


def _binaries(document: Any) -> dict[str, str]:
    found = {}
    for logical_id, function in _functions(document).items():
        try:
            found[logical_id] = str(function["Metadata"]["BuildProperties"]["Binary"])
        except KeyError as missing:
            raise ReleaseError(f"template.yaml: {logical_id} does not say which binary it is: no {missing}") from None
    return found


def of(template: str, architecture: str, version: str) -> str:
    """template.yaml, as the release of one architecture has it."""
    yaml = _yaml()
    document = yaml.load(template)
    for logical_id, binary in _binaries(document).items():
        function = document["Resources"][logical_id]
        del function["Metadata"]
        function["Properties"]["CodeUri"] = package(architecture, binary)

    parameter = document["Parameters"]["Architecture"]
    others = " ".join(f"For {other}: {name(other)}." for other in ARCHITECTURES if other != architecture)
    parameter["Description"] = f"Processor of the function; this template has the packages of {architecture}. {others}"
    parameter["Default"] = architecture
    parameter["AllowedValues"] = [architecture]
    parameter["ConstraintDescription"] = f"this template has the packages of {architecture}. {others}"

    metadata = document.setdefault("Metadata", {})
    metadata["AWS::ServerlessRepo::Application"] = _application(document["Description"], version)
    written = io.StringIO()
    yaml.dump(document, written)
    return written.getvalue()


def packages(released: str) -> dict[str, str]:
    """The packages that a template of a release names, by the function's logical id."""
    return {name: str(one["Properties"]["CodeUri"]) for name, one in _functions(_yaml().load(released)).items()}


def _application(description: str, version: str) -> dict[str, Any]:
    """For `sam publish`, to the AWS Serverless Application Repository."""
    return {
        "Name": "spillway",
        "Description": description,
        "Author": "Spillway",
        "SpdxLicenseId": "Apache-2.0",
        "LicenseUrl": "LICENSE",
        "ReadmeUrl": "README.md",
        "Labels": ["eks", "spot", "drain", "autoscaling", "kubernetes"],
        "SemanticVersion": version,
    }


def _functions(document: Any) -> dict[str, Any]:
    return {name: one for name, one in document["Resources"].items() if one["Type"] == FUNCTION}


def _yaml() -> YAML:
    """Comments, quotes and order stay as they are written."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml
