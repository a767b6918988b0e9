"""Answers for the values of the chart: follows the lines of the table, and makes those that need more than a text."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from message_preview import command as preview

from . import parameters
from .chart import CHART, VARIABLES
from .installation import Installation, placeholder
from .parameters import LISTS, NTHS_ATTEMPT_S, WEBHOOK_PARAMETER, actions, has_address, heartbeats_until, selectors, template_file
from .values import Unusable


class Verdict(Enum):
    """Verdicts in the order of the report: the work for a person comes last, next to the prompt."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_NEEDED = "not needed"
    NO_COUNTERPART = "no counterpart"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    verdict: Verdict
    # The difference, the reason, the remedy.
    why: str
    # Our parameters that the value decides, alone or with others.
    parameters: tuple[str, ...] = ()
    # Commands to run for it.
    commands: tuple[str, ...] = ()


IN_THE_DOCUMENT = "It goes into the webhook's document."
PREVIEW = "tools/spillway preview --template FILE shows what becomes of a template, without sending anything."


def answer_of(key: str, nth: Installation) -> Answer:
    """The first line of the value's table whose conditions hold."""
    for outcome in (CHART | VARIABLES)[key].outcomes:
        if all(_holds(one, key, nth) for one in outcome.conditions):
            first, *rest = outcome.words
            if outcome.is_function:
                return FUNCTIONS[first](nth, key, *rest, outcome.why)
            return Answer(Verdict(first.replace("-", " ")), outcome.why, tuple(rest))
    raise AssertionError(f"chart.txt: {key} has no line without a condition")


def is_decided(key: str) -> bool:
    outcomes = (CHART | VARIABLES)[key].outcomes
    return bool(outcomes[0].conditions) or outcomes[0].is_function


def _holds(condition: str, key: str, nth: Installation) -> bool:
    if condition.startswith("!"):
        return not _holds(condition[1:], key, nth)
    if condition in ("set", "default"):
        return bool(nth[key]) if condition == "set" else nth[key] == (CHART | VARIABLES)[key].default
    return bool(FACTS[condition](nth) if condition in FACTS else nth[condition])


def _headers_can_be_read(nth: Installation) -> bool:
    try:
        return bool(parameters.headers(nth["webhookHeaders"]))
    except Unusable:
        return False


FACTS: dict[str, Callable[[Installation], object]] = {
    "queue": lambda nth: nth.queue_mode,
    "monitor": lambda nth: nth["serviceMonitor.create"] or nth["podMonitor.create"],
    "several-selectors": lambda nth: len({json.dumps(one, sort_keys=True) for one in selectors(nth).values()}) > 1,
    "windows-only": lambda nth: list(selectors(nth)) == ["windows"],
    "level-error": lambda nth: nth["logLevel"].lower() == "error",
    "level-debug": lambda nth: nth["logLevel"].lower() == "debug",
    "negative": lambda nth: nth["podTerminationGracePeriod"] < 0,
    "one-attempt": lambda nth: nth["nodeTerminationGracePeriod"] <= NTHS_ATTEMPT_S,
    "no-delay": lambda nth: nth["completeLifecycleActionDelaySeconds"] <= 0,
    "heartbeats": lambda nth: heartbeats_until(nth) is not None,
    "other-effect": lambda nth: nth["TAINT_EFFECT"] in ("PreferNoSchedule", "NoExecute"),
    "address": has_address,
    "url-referred": lambda nth: "webhookURL" in nth.referred,
    "headers": _headers_can_be_read,
    "template-file": template_file,
    "config-map-named": lambda nth: nth["webhookTemplateConfigMapName"] or nth["webhookTemplateConfigMapKey"],
}


def _switch(nth: Installation, key: str, notice: str, more: str) -> Answer:
    doing = actions(nth)[notice]
    if nth.queue_mode and nth[key] is False:
        why = f"NTH does not look at it in queue mode, and {doing}s all the same; so does Spillway. If you mean it, take {notice} out of DrainOn and CordonOn."
        return Answer(Verdict.DIFFERS, why)
    if nth.queue_mode:
        return Answer(Verdict.NOT_NEEDED, "NTH does not look at it in queue mode.")
    decided_by = (LISTS[doing == "cordon"],)
    if not nth[key]:
        return Answer(Verdict.SAME, "Left alone, as NTH did." if doing == "ignore" else f"Only {doing}ed, as NTH did.", decided_by)
    return Answer(Verdict.DIFFERS, more, decided_by) if more else Answer(Verdict.SAME, "Acted on, as NTH did.", decided_by)


def _former(nth: Installation, key: str, successor: str, _: str) -> Answer:
    """Name of a value up to chart 0.18.5. Later charts also set its successor, which wins."""
    if not nth.queue_mode:
        return Answer(Verdict.NOT_NEEDED, "NTH does not look at it in IMDS mode.")
    if nth[key] == CHART[key].default or any(one.key == successor for one in nth.given):
        return Answer(Verdict.NOT_NEEDED, f"{successor} wins over it.")
    return Answer(
        Verdict.UNKNOWN,
        f"Depends on the chart's version (helm list shows it). Up to 0.18.5 NTH obeyed this value: rename it to {successor} "
        f"and run this again. From 0.19.0 on {successor} wins, and its default {json.dumps(CHART[successor].default)} holds.",
    )


def _webhook(nth: Installation, *_: str) -> Answer:
    """The document is made of the values by this tool, so that no secret is shown or stands in a command."""
    first, options = "", ""
    reference = nth.referred.get("webhookURL", {}).get("secretKeyRef") or {}
    if secret := reference.get("name") or nth["webhookURLSecretName"]:
        first = "The function reads no Secret of the cluster. "
        get = _kubectl_get("secret", secret, reference.get("key") or "webhookurl", " | base64decode")
        options = f' --webhook-url "$({get})"'
    elif found := placeholder(nth["webhookURL"]):
        first = f"It has the placeholder {found}, and this tool does not know what takes its place: URL. "
        options = ' --webhook-url "$URL"'
    if template_file(nth):
        get = _kubectl_get("configmap", nth["webhookTemplateConfigMapName"], nth["webhookTemplateConfigMapKey"])
        options += f' --webhook-template "$({get})"'
    default = "" if nth["webhookTemplate"] or template_file(nth) else " Without a template Slack's hosts get Slack's form, and any other host {\"text\": …}."
    return Answer(
        Verdict.DIFFERS,
        f"{first}Address, headers, proxy and template are one document, kept in Parameter Store and not in the stack, whose "
        "parameters are for many to read. Put it there before you deploy. A message goes out when a drain begins and when "
        f"it ends; NTH's came after the drain.{default}",
        ("Webhook",),
        (
            f"aws ssm put-parameter --type SecureString --tier Intelligent-Tiering --name {WEBHOOK_PARAMETER} "
            f'--value "$(tools/spillway from-nth --webhook{options} FILE)"',
        ),
    )


def _kubectl_get(kind: str, name: str, key: str, then: str = "") -> str:
    template = shlex.quote(f'{{{{index .data "{key}"{then}}}}}')
    return f"kubectl get {kind} {shlex.quote(name)} --namespace NAMESPACE --output go-template={template}"


def _message(nth: Installation, *_: str) -> Answer:
    if not preview.program():
        return Answer(Verdict.DIFFERS, f"It has not been rendered here. {PREVIEW} {IN_THE_DOCUMENT}", ("Webhook",))
    if failed := preview.rendered("template", nth["webhookTemplate"])[1]:
        return Answer(Verdict.NO_COUNTERPART, f"It does not work as it is: {failed}. Fix it, and run this again.")
    return Answer(Verdict.SAME, f"Works unchanged: it was rendered over sample drains, with NTH's fields and ours. {IN_THE_DOCUMENT}", ("Webhook",))


FUNCTIONS = {"switch": _switch, "former": _former, "webhook": _webhook, "message": _message}
