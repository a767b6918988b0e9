"""A line for every value, for people at a terminal: what becomes of it, and why."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import Any

from .answers import Answer, Verdict, answer_of, is_decided
from .chart import CHART, SECRET, VALUE_OF_VARIABLE, VARIABLES
from .installation import Given, Installation
from .parameters import LISTS, wanted

# A map or a long text is cut here; it stands in the file whole.
LONGEST_VALUE = 60
# So is a parameter beside its value: it is often the same text.
LONGEST_PARAMETER = 45
MODE = "enableSqsTerminationDraining"
# By convention the condition of a chart's dependency.
UMBRELLA_SWITCH = "enabled"

CLUSTER = "Spillway leaves all other clusters alone. tools/spillway enroll lets it into this one."
FIRST_DRY = (
    "Nothing is touched, and the receipts say what would have been done. When they and the doctor are as you want them, "
    "run this again with --live."
)
BY_HAND = "It wins over what NTH's values say."


@dataclass(frozen=True)
class Line:
    value: str
    answer: Answer
    # Our parameters with their values, as they are shown.
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conversion:
    headline: str
    lines: tuple[Line, ...]
    parameters: dict[str, str]


def convert(nth: Installation, cluster: str = "", live: bool = False, by_hand: dict[str, str] | None = None) -> Conversion:
    """All lines, and the parameters. DryRun is always one of them, because SAM keeps the previous value of what is not."""
    found = wanted(nth)
    lines = [line(shown(one), answer_to(one, nth), found) for one in nth.given]
    told = {name for one in lines for name in one.answer.parameters}
    given = {one.key for one in nth.given}
    # NTH's defaults that need a parameter of Spillway; and the mode, on which all depends.
    for default in (Given(key, value.default, key) for key, value in CHART.items()):
        answer = answer_to(default, nth)
        if (default.key == MODE and MODE not in given) or (found.keys() & set(answer.parameters)) - told:
            told |= set(answer.parameters)
            lines.append(line(f"{shown(default)} (the chart's default)", answer, found))
    own = {"Clusters": (f"--cluster {cluster}", cluster, CLUSTER)} if cluster else {}
    own["DryRun"] = ("--live", "false", "Spillway drains.") if live else ("without --live", "true", FIRST_DRY)
    own |= {name: (f"--set {name}={value}", value, BY_HAND) for name, value in (by_hand or {}).items()}
    for name, (option, value, why) in own.items():
        found[name] = value
        lines.append(line(option, Answer(Verdict.SAME, why, (name,)), found))
    return Conversion(headline(nth), tuple(lines), found)


def headline(nth: Installation) -> str:
    mode = "queue mode" if nth.queue_mode else "IMDS mode"
    manifest = f", in {nth.manifest}" if nth.manifest else ""
    under = f", under the key {nth.under}; the file's other keys are other charts'" if nth.under else ""
    count = len(nth.given)
    return f"aws-node-termination-handler in {mode}, with {count or 'no'} value{'s' * (count != 1)} of its own{manifest}{under}"


def answer_to(given: Given, nth: Installation) -> Answer:
    if given.key is None:
        return of_unknown(given)
    if given.key in nth.overridden and not given.of_extra_env:
        return Answer(Verdict.NOT_NEEDED, f"extraEnv sets {CHART[given.key].variable} after it, and that holds.")
    if given.key not in nth.holds:
        return Answer(Verdict.NOT_NEEDED, "It is not NTH's own but of the AWS SDK or of Go in NTH's pod; the function runs elsewhere.")
    if is_decided(given.key) and given.key in nth.referred and given.key != "webhookURL":
        return Answer(Verdict.NO_COUNTERPART, "Its value stands elsewhere in the cluster. Write it in place of valueFrom and run this again.")
    return answer_of(given.key, nth)


def of_unknown(one: Given) -> Answer:
    if one.name == UMBRELLA_SWITCH:
        why = "The umbrella chart's switch for NTH, not a value of NTH's. Where it is false, that chart installs no NTH."
        return Answer(Verdict.NOT_NEEDED if one.value is True else Verdict.NO_COUNTERPART, why)
    why = "NTH does not read it." if one.of_extra_env else "Helm ignores it: the chart has no such value."
    if one.nearest:
        why += f" The nearest that it knows: {one.nearest}{', in extraEnv' if one.nearest in VARIABLES else ''}."
    return Answer(Verdict.UNKNOWN, why)


def line(value: str, answer: Answer, found: dict[str, str]) -> Line:
    parameters = tuple(setting(name, found[name], LONGEST_PARAMETER) for name in answer.parameters if name in found)
    if not parameters and len(answer.parameters) == 1 and answer.parameters[0] in LISTS:
        parameters = (f"{answer.parameters[0]} (default)",)
    return Line(value, answer, parameters)


def shown(given: Given) -> str:
    # A webhook's address under a misspelt name is one all the same. A variable that is not NTH's may hold anything.
    meant = given.key or VALUE_OF_VARIABLE.get(given.nearest or "", given.nearest)
    secret = meant in SECRET or (given.of_extra_env and meant not in CHART and meant not in VARIABLES)
    is_hidden = secret and given.value and not isinstance(given.value, dict)
    text = "(not shown)" if is_hidden else cut(written(given.value), LONGEST_VALUE)
    return f"{'extraEnv ' if given.of_extra_env else ''}{given.name}: {text}"


def setting(name: str, value: str, longest: int) -> str:
    return f"{name}={cut(value, longest)}"


def written(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) and value else json.dumps(value, default=str, ensure_ascii=False)


def cut(text: str, longest: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def render(conversion: Conversion, width: int, everything: bool = False) -> str:
    """The report. Values with the same reason stand together; what is not needed is counted, unless all is wanted."""
    out = [conversion.headline]
    for verdict in Verdict:
        lines = [one for one in conversion.lines if one.answer.verdict is verdict]
        if lines:
            folded = verdict is Verdict.NOT_NEEDED and not everything
            out += ["", f"{verdict.value.upper()} ({len(lines)}){': --all shows them' if folded else ''}"]
            lines = [] if folded else lines
        for answer in dict.fromkeys(one.answer for one in lines):
            for one in (one for one in lines if one.answer == answer):
                parameters = f"-> {' '.join(one.parameters)}" if one.parameters else ""
                whole = f"  {one.value}  {parameters}".rstrip()
                out += [f"  {one.value}", f"    {parameters}"] if len(whole) > width and parameters else [whole]
            indent = " " * 6
            out += textwrap.wrap(answer.why, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
            # Not wrapped, so that they can be copied.
            out += [f"      $ {command}" for command in answer.commands]
    return "\n".join(out) + "\n"
