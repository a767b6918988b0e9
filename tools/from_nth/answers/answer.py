"""What becomes of a value: a verdict, and why in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Union

from ..installation import Installation


class Verdict(Enum):
    """In the order in which they are told: what needs a person comes last, next to the prompt."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_NEEDED = "not needed"
    NO_COUNTERPART = "no counterpart"
    NOT_IN_THIS_VERSION = "not in this version"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """What becomes of one value."""

    verdict: Verdict
    # How it differs, why it is not needed, what to do.
    why: str
    # Our parameters that it decides, alone or with others.
    parameters: tuple[str, ...] = ()
    # Commands to run for it.
    commands: tuple[str, ...] = ()


Answers = dict[str, Union[Answer, Callable[[Installation], Answer]]]


def same(why: str, *parameters: str) -> Answer:
    return Answer(Verdict.SAME, why, parameters)


def differs(why: str, *parameters: str) -> Answer:
    return Answer(Verdict.DIFFERS, why, parameters)


def not_needed(why: str) -> Answer:
    return Answer(Verdict.NOT_NEEDED, why)


def no_counterpart(why: str, *commands: str) -> Answer:
    return Answer(Verdict.NO_COUNTERPART, why, commands=commands)


NOT_IN_IMDS_MODE = not_needed("NTH does not look at it in IMDS mode.")
NOT_IN_QUEUE_MODE = not_needed("NTH does not look at it in queue mode.")
