"""A step of a run, and what it costs: enough to print the plan without an account."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Of = TypeVar("Of")


class SmokeError(Exception):
    """Something is not as the release says: the run ends, and everything is taken away."""


@dataclass(frozen=True)
class Step(Generic[Of]):
    name: str
    does: str
    run: Callable[[Of], None]
    minutes: int = 1
    usd: float = 0.0


def plan(title: str, steps: list[Step[Of]]) -> str:
    """What would be done, as lines for a terminal."""
    minutes, usd = sum(step.minutes for step in steps), sum(step.usd for step in steps)
    lines = [f"{title}: about {minutes} minutes, about {usd:.2f} USD"]
    lines += [f"  {step.name:18} {step.does} ({step.minutes} min, {step.usd:.2f} USD)" for step in steps]
    return "\n".join(lines)
