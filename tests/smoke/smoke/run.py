"""What the steps of one run share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smoke.aws import Aws
from smoke.programs import Programs

# All that a run makes has this tag, with the run's name: by it, the teardown finds what is left.
TAG = "spillway-smoke"


@dataclass
class Run:
    """One run in one account and Region."""

    aws: Aws
    programs: Programs
    account: str
    partition: str
    bundle: Path
    """The unpacked release."""
    folder: Path
    """For its own files."""
    say: Callable[[str], None] = print
    pause: float = 5
    """Seconds between two looks at something that takes its time."""
    template: dict[str, Any] = field(default_factory=dict)
    """As CloudFormation has transformed it."""
    outputs: dict[str, str] = field(default_factory=dict)
    """Of the stack with the cluster, then of Spillway's too."""

    @property
    def name(self) -> str:
        return f"{TAG}-{self.aws.region}"

    @property
    def bucket(self) -> str:
        return f"{self.name}-{self.account}"

    @property
    def tags(self) -> list[dict[str, str]]:
        return [{"Key": TAG, "Value": self.name}]
