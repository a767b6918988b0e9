"""NTH's Helm chart, read from the table chart.txt: every value, and what becomes of it; and what became of older values."""

from __future__ import annotations

import json
import pkgutil
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """A line of the table: what becomes of a value under some conditions."""

    conditions: tuple[str, ...]
    # A verdict and parameters, or the name of a function and its arguments.
    words: tuple[str, ...]
    is_function: bool
    why: str


@dataclass(frozen=True)
class Value:
    # flag, number, text, map or list.
    kind: str
    default: Any
    # The environment variable that the chart makes of it. `extraEnv` comes after it and wins.
    variable: str | None
    outcomes: tuple[Outcome, ...]


HEAD = re.compile(r"(\S.*?) (flag|number|text|map|list) (\S+)(?: ([A-Z_]+))?(?: (@.+))?")
OUTCOME = re.compile(r"  (?:([^|?]+) \? )?(> )?([^|]+?)(?: \| (.+))?")


def _table(text: str) -> tuple[dict[str, Value], dict[str, Value]]:
    values: dict[str, Value] = {}
    variables: dict[str, Value] = {}
    texts: dict[str, str] = {}
    rules: dict[str, list[Outcome]] = {}
    into, rule = values, list[Outcome]()
    # A value's only line may stand behind its head.
    for line in re.sub(r"(?m)^([A-Za-z@].*?)(  .*)", r"\1\n\2", text).splitlines():
        if line.startswith("$"):
            name, texts[name] = line[1:].split(" ", 1)  # type: ignore[assignment]
        elif line.startswith("="):
            into = variables
        elif found := OUTCOME.fullmatch(line):
            conditions, function, words, why = found.groups(default="")
            why = re.sub(r"\{([A-Z_]+)\}", lambda word: texts[word[1]], why)
            rule.append(Outcome(tuple(conditions.split(" & ")) if conditions else (), tuple(words.split()), bool(function), why))
        elif line.startswith("@"):
            rule = rules[line] = []
        elif found := HEAD.fullmatch(line):
            names, kind, default, variable, shared = found.groups()
            rule = rules[shared] if shared else []
            into.update({name: Value(kind, json.loads(default), variable, rule) for name in names.split()})  # type: ignore[arg-type]
    return values, variables


CHART, VARIABLES = _table((pkgutil.get_data("from_nth", "chart.txt") or b"").decode())
VALUE_OF_VARIABLE = {value.variable: key for key, value in CHART.items() if value.variable}

# A map of which the chart knows each key; of the other maps every key goes to Kubernetes as it is.
GROUPS = ("image", "serviceAccount", "rbac", "serviceMonitor", "podMonitor")

# What a file with none but these in it might as well be another chart's.
COMMON = frozenset(
    "affinity dnsConfig dnsPolicy extraEnv fullnameOverride image logLevel nameOverride nodeSelector podAnnotations "
    "podDisruptionBudget podLabels podMonitor podSecurityContext priorityClassName probes rbac replicas resources "
    "securityContext serviceAccount serviceMonitor strategy terminationGracePeriodSeconds tolerations "
    "topologySpreadConstraints updateStrategy".split()
)

# Never shown: a webhook's address and headers let whoever has them write to the channel.
SECRET = frozenset({"webhookURL", "webhookHeaders", "webhookProxy", "awsAccessKeyID", "awsSecretAccessKey"})
