"""A line for every value, for people at a terminal: what becomes of it, and why."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import Any

from .answers import Answer, Verdict, answer_of, is_decided
from .chart import CHART, FORMER, SECRET, VALUE_OF_VARIABLE, VARIABLES
from .installation import Given, Installation, Unknown
from .parameters import LISTS, wanted
from .template import Parameter

# A map or a long text is cut here; it stands in the file whole.
LONGEST_VALUE = 60
# So is a parameter beside its value: it is often the same text.
LONGEST_PARAMETER = 45
MODE = "enableSqsTerminationDraining"
HIDDEN = "(not shown)"
# By convention the condition of a chart's dependency.
UMBRELLA_SWITCH = "enabled"


FIRST_DRY = Answer(
    Verdict.SAME,
    "Nothing is touched, and the receipts say what would have been done. When they and the doctor are as you want them, run this again with --live.",
    ("DryRun",),
)
BY_HAND = Answer(Verdict.SAME, "It wins over what NTH's values say.")
LIVE = Answer(Verdict.SAME, "Spillway drains.", ("DryRun",))


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
    # What this version of the template has, and takes.
    parameters: dict[str, str]


def convert(
    nth: Installation, template: dict[str, Parameter], cluster: str | None = None, live: bool = False, by_hand: dict[str, str] | None = None
) -> Conversion:
    """All lines, and the parameters that this version can be given. Whether it is a dry run is always said, because SAM
    keeps the previous value of what is not."""
    found = wanted(nth)
    lines = [of_given(given, nth, found, template) for given in nth.given]
    told = {name for given in nth.given for name in answer_to(given, nth).parameters}
    lines += by_default(nth, found, told, template)
    lines += [of_unknown(one) for one in nth.unknown]
    if cluster:
        its = {"Clusters": cluster}
        answer = Answer(Verdict.SAME, "Spillway leaves all other clusters alone. tools/spillway enroll lets it into this one.", tuple(its))
        lines.append(line(f"--cluster {cluster}", answer, its, template))
        found |= its
    its = {"DryRun": str(not live).lower()}
    lines.append(line("--live" if live else "without --live", LIVE if live else FIRST_DRY, its, template))
    found |= its
    for name, value in (by_hand or {}).items():
        lines.append(line(f"--set {name}={value}", BY_HAND, its := {name: value}, template, (name,)))
        found |= its
    can_be_given = {name: value for name, value in found.items() if not refusals({name: value}, template)}
    return Conversion(headline(nth), tuple(lines), can_be_given)


def headline(nth: Installation) -> str:
    mode = "queue mode" if nth.queue_mode else "IMDS mode"
    manifest = f", in {nth.manifest}" if nth.manifest else ""
    under = f", under the key {nth.under}; the file's other keys are other charts'" if nth.under else ""
    count = len(nth.given) + len(nth.unknown)
    return f"aws-node-termination-handler in {mode}, with {count or 'no'} value{'s' * (count != 1)} of its own{manifest}{under}"


def of_given(given: Given, nth: Installation, found: dict[str, str], template: dict[str, Parameter]) -> Line:
    return line(shown(given.name, given.value, given.key, given.of_extra_env), answer_to(given, nth), found, template)


def answer_to(given: Given, nth: Installation) -> Answer:
    if given.key in nth.overridden and not given.of_extra_env:
        return Answer(Verdict.NOT_NEEDED, f"extraEnv sets {CHART[given.key].variable} after it, and that holds.")
    if given.key not in nth.holds:
        return Answer(Verdict.NOT_NEEDED, "It is not NTH's own but of the AWS SDK or of Go in NTH's pod; the function runs elsewhere.")
    if is_decided(given.key) and given.key in nth.referred and given.key != "webhookURL":
        return Answer(Verdict.NO_COUNTERPART, "Its value stands elsewhere in the cluster. Write it in place of valueFrom and run this again.")
    return answer_of(given.key, nth)


def by_default(nth: Installation, found: dict[str, str], told: set[str], template: dict[str, Parameter]) -> list[Line]:
    """Lines for NTH's defaults that need a parameter of Spillway."""
    lines = []
    for key, value in CHART.items():
        given = Given(key, value.default, key)
        answer = answer_to(given, nth)
        # The mode is told always: everything else depends on it.
        untold = key == MODE and key not in {one.key for one in nth.given}
        if untold or (found.keys() & set(answer.parameters)) - told:
            told |= set(answer.parameters)
            lines.append(line(f"{shown(key, value.default, key)} (the chart's default)", answer, found, template))
    return lines


def of_unknown(one: Unknown) -> Line:
    if one.name == UMBRELLA_SWITCH:
        why = "The umbrella chart's switch for NTH, not a value of NTH's. Where it is false, that chart installs no NTH."
        return Line(shown(one.name, one.value, None), Answer(Verdict.NOT_NEEDED if one.value is True else Verdict.NO_COUNTERPART, why))
    if one.name in FORMER:
        why = f"Charts before 2022 had it; it is now {one.nearest}. If yours is as old, rename it and run this again."
    elif one.of_extra_env:
        why = "NTH does not read it." + (f" The nearest that it does read: {one.nearest}." if one.nearest else "")
    else:
        why = "Not a value of NTH's chart: Helm ignores it."
        if one.nearest:
            why += f" The nearest that it has: {one.nearest}{', in extraEnv' if one.nearest in VARIABLES else ''}."
    # A webhook's address under a misspelt name is one all the same.
    meant = VALUE_OF_VARIABLE.get(one.nearest, one.nearest)
    return Line(shown(one.name, one.value, meant, one.of_extra_env), Answer(Verdict.UNKNOWN, why))


def line(value: str, answer: Answer, found: dict[str, str], template: dict[str, Parameter], names: tuple[str, ...] = ()) -> Line:
    """Line of the report. A parameter that the template refuses changes the verdict."""
    its = {name: found[name] for name in names or answer.parameters if name in found}
    parameters = tuple(setting(name, text, LONGEST_PARAMETER) for name, text in its.items())
    if not its and len(answer.parameters) == 1 and answer.parameters[0] in LISTS:
        parameters = (f"{answer.parameters[0]} (default)",)
    if why := refusals(its, template):
        answer = Answer(Verdict.NOT_IN_THIS_VERSION, f"template.yaml {why}. {answer.why}", answer.parameters, answer.commands)
    return Line(value, answer, parameters)


def refusals(parameters: dict[str, str], template: dict[str, Parameter]) -> str:
    """Reasons of the template against these parameters; empty if there are none."""
    missing = [name for name in parameters if name not in template]
    refused: dict[str, list[str]] = {}
    for name in parameters.keys() - set(missing):
        if why := template[name].refuses(parameters[name]):
            refused.setdefault(why, []).append(name)
    told = [f"has no {', '.join(missing)} yet"] if missing else []
    told += [f"does not take this for {', '.join(sorted(names))} ({why})" for why, names in sorted(refused.items())]
    return " and ".join(told)


def shown(name: str, value: Any, key: str | None, of_extra_env: bool = False) -> str:
    where = f"extraEnv {name}" if of_extra_env else name
    # Of a variable that is not NTH's nobody here knows what it holds.
    secret = key in SECRET or (of_extra_env and key not in CHART and key not in VARIABLES)
    return f"{where}: {HIDDEN if secret and value and not isinstance(value, dict) else cut(written(value), LONGEST_VALUE)}"


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
                out += entry(one, width)
            indent = " " * 6
            out += textwrap.wrap(answer.why, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
            # Not wrapped, so that they can be copied.
            out += [f"      $ {command}" for command in answer.commands]
    return "\n".join(out) + "\n"


def entry(one: Line, width: int) -> list[str]:
    parameters = f"-> {' '.join(one.parameters)}" if one.parameters else ""
    whole = f"  {one.value}  {parameters}".rstrip()
    return [whole] if len(whole) <= width else [f"  {one.value}", f"    {parameters}"] if parameters else [whole]
