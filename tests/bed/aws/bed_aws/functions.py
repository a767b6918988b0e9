"""How each function of the template is invoked: how often and how long its asynchronous queue tries, how many executions it
may have at a time.
"""

from pathlib import Path
from typing import Any

from bed_aws import template
from bed_aws.iam import ROLES
from bed_aws.template import TemplateError

# Lambda's bounds (PutFunctionEventInvokeConfig).
BOUNDS = {"MaximumRetryAttempts": (0, 2), "MaximumEventAgeInSeconds": (60, 21600)}


class Functions:
    def __init__(self, path: Path) -> None:
        resources = template.resources(path)
        self._limits = {
            role: _limits(logical_id, resources[logical_id]["Properties"])
            for role, (logical_id, _) in ROLES.items()
            if logical_id in resources
        }

    def limits(self, role: str) -> dict[str, int | None]:
        """Of the function that has this role; of one that the template lacks there are none."""
        return self._limits.get(role, _limits(role, {}))


def _limits(name: str, properties: dict[str, Any]) -> dict[str, int | None]:
    config = properties.get("EventInvokeConfig", {})
    for member, (least, most) in BOUNDS.items():
        if not least <= config.get(member, least) <= most:
            raise TemplateError(f"{member} of {name} is {config[member]}; Lambda takes {least} to {most}")
    return {
        "maximum_retry_attempts": config.get("MaximumRetryAttempts"),
        "maximum_event_age_s": config.get("MaximumEventAgeInSeconds"),
        "reserved_concurrency": properties.get("ReservedConcurrentExecutions"),
    }
