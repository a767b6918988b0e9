"""One step in one cluster: what it is about, what is to become of it, and the command that does it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from enum import Enum


class Part(Enum):
    ACCESS = "access"
    RIGHTS = "rights"
    GROUPS = "groups"
    NODES = "nodes"


class State(Enum):
    # It is as it should be.
    THERE = "there"
    # A command will change it.
    TO_DO = "to do"
    DONE = "done"
    # Somebody else has to do something; we change nothing.
    TOLD = "told"
    FAILED = "failed"


@dataclass(frozen=True)
class Command:
    """A command of `aws` or `kubectl`, without what says which Region or cluster."""

    program: str
    arguments: tuple[str, ...]
    stdin: str = ""

    def __str__(self) -> str:
        return shlex.join([self.program, *self.arguments])


def aws(*arguments: str) -> Command:
    return Command("aws", arguments)


def kubectl(*arguments: str, stdin: str = "") -> Command:
    return Command("kubectl", arguments, stdin)


@dataclass(frozen=True)
class Step:
    part: Part
    what: str
    state: State
    # What is so, or what went wrong.
    why: str = ""
    # What does it, or what the reader can do. Empty for what is there.
    commands: tuple[Command | str, ...] = field(default=())
    # A drain is under way, which needs what stands below it.
    drains: bool = False

    def ended(self, state: State, why: str = "") -> "Step":
        return replace(self, state=state, why=why or self.why)

    def told(self, why: str) -> "Step":
        return self.ended(State.TOLD, why) if self.state is State.TO_DO else self
