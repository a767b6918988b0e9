"""The samconfig.toml of a release: the project's own, and the same again for each other architecture.

`sam deploy` takes the default architecture, `sam deploy --config-env x86_64` the other.
"""

from __future__ import annotations

import copy

import tomlkit

from release_bundle import template
from release_bundle.elf import ARCHITECTURES

# The commands that read a template.
READ_A_TEMPLATE = ("validate", "package", "deploy")
HEADER = "# What `sam` does here without being told: `sam deploy`, or `sam deploy --config-env x86_64`.\n"


def of(samconfig: str) -> str:
    """samconfig.toml, as a release has it."""
    ours = tomlkit.parse(samconfig).unwrap()
    default = ours.pop("default")
    written = tomlkit.document()
    for key, value in ours.items():
        written[key] = value
    written["default"] = default
    for architecture in ARCHITECTURES:
        if architecture != template.DEFAULT:
            written[architecture] = _for_template(default, template.name(architecture))
    return HEADER + tomlkit.dumps(written)


def _for_template(
    tables: dict[str, dict[str, dict[str, object]]], name: str
) -> dict[str, dict[str, dict[str, object]]]:
    """The same tables, with a template of their own."""
    found = copy.deepcopy(tables)
    for command in READ_A_TEMPLATE:
        found.setdefault(command, {}).setdefault("parameters", {})["template_file"] = name
    return found
