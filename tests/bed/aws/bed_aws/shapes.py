"""What a request may look like by AWS' own model of the service, which botocore carries."""

import re
from functools import cache
from typing import Any

from botocore.loaders import create_loader


def violations(service: str, action: str, given: dict[str, Any]) -> list[str]:
    """What AWS would find wrong with a request before it looks at anything else, in its words."""
    model = _model(service)
    # SQS takes the names that its documentation lists; its model has those of a queue, of which SentTimestamp is none.
    if (service, action) == ("sqs", "ReceiveMessage"):
        given = {member: value for member, value in given.items() if member != "AttributeNames"}
    return _violations(model["shapes"], model["operations"][action]["input"]["shape"], given, "")


@cache
def _model(service: str) -> dict[str, Any]:
    return create_loader().load_service_model(service, "service-2")


def _violations(shapes: dict[str, Any], name: str, given: Any, path: str) -> list[str]:
    shape = shapes[name]
    if shape["type"] == "structure":
        if not isinstance(given, dict):
            return [f"Value at '{path}' failed to satisfy constraint: Member must be an object"]
        missing = [
            f"Value null at '{_below(path, member)}' failed to satisfy constraint: Member must not be null"
            for member in shape.get("required", [])
            if given.get(member) is None
        ]
        present = {member: value for member, value in given.items() if value is not None and member in shape["members"]}
        inner = [
            found
            for member, value in present.items()
            for found in _violations(shapes, shape["members"][member]["shape"], value, _below(path, member))
        ]
        return missing + inner
    if shape["type"] == "list" and isinstance(given, list):
        short = [] if len(given) >= shape.get("min", 0) else [f"Member must have length greater than or equal to {shape['min']}"]
        long = [] if len(given) <= shape.get("max", len(given)) else [f"Member must have length less than or equal to {shape['max']}"]
        own = [f"Value at '{path}' failed to satisfy constraint: {constraint}" for constraint in short + long]
        inner = [_violations(shapes, shape["member"]["shape"], one, f"{path}.{number + 1}.member") for number, one in enumerate(given)]
        return own + [found for one in inner for found in one]
    if shape["type"] != "string":
        return []
    if not isinstance(given, str):
        return [f"Value at '{path}' failed to satisfy constraint: Member must be a string"]
    broken = []
    if len(given) > shape.get("max", len(given)):
        broken.append(f"Member must have length less than or equal to {shape['max']}")
    if len(given) < shape.get("min", 0):
        broken.append(f"Member must have length greater than or equal to {shape['min']}")
    if "pattern" in shape and not _matches(shape["pattern"], given):
        broken.append(f"Member must satisfy regular expression pattern: {shape['pattern']}")
    if "enum" in shape and given not in shape["enum"]:
        broken.append(f"Member must satisfy enum value set: [{', '.join(shape['enum'])}]")
    return [f"Value '{given}' at '{path}' failed to satisfy constraint: {constraint}" for constraint in broken]


@cache
def _pattern(pattern: str) -> re.Pattern[str] | None:
    """Some are Java's, with surrogates in a range, which Python does not read: they hold for everything."""
    try:
        return re.compile(pattern)
    except re.error:
        return None


def _matches(pattern: str, given: str) -> bool:
    compiled = _pattern(pattern)
    return compiled is None or compiled.search(given) is not None


def _below(path: str, member: str) -> str:
    """AWS writes members in lower camel case: `target.roleArn`."""
    member = member[0].lower() + member[1:]
    return f"{path}.{member}" if path else member
