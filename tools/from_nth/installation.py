"""An installation of NTH: the chart's defaults, the values over them, and `extraEnv` over these."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from . import manifests
from .chart import CHART, COMMON, GROUPS, VALUE_OF_VARIABLE, VARIABLES
from .values import Unusable, named

# Go's strconv.ParseBool, with which NTH reads its environment.
FLAGS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True)
FLAGS |= dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False)
# What Flux and an ApplicationSet put a value in place of.
PLACEHOLDER = re.compile(r"\$\{[^}]*\}|\{\{[^}]*\}\}")
# What decides which nodes are ours: a placeholder would be no such choice.
CHOICES = ("targetNodeOs", "nodeSelector", "linuxNodeSelector", "windowsNodeSelector", "daemonsetNodeSelector")
# What the AWS SDK and Go read by themselves.
NOT_NTHS = ("AWS_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "GO", "SSL_CERT_")


@dataclass(frozen=True)
class Given:
    name: str
    value: Any
    # The name by which answers know it: of a variable that the chart has a value for, that value's. None if it is unknown.
    key: str | None
    of_extra_env: bool = False
    # What was probably meant by an unknown name.
    nearest: str | None = None


@dataclass
class Installation:
    # The manifest that the values were in, and the umbrella chart's key under which they were.
    manifest: str | None = None
    under: str | None = None
    given: list[Given] = field(default_factory=list)
    # What holds in the end, for every value of the chart and every variable of VARIABLES.
    holds: dict[str, Any] = field(default_factory=lambda: {key: value.default for key, value in (CHART | VARIABLES).items()})
    # Variables whose value stands in a Secret or ConfigMap: the key, and where.
    referred: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Keys of values that `extraEnv` sets once more.
    overridden: set[str] = field(default_factory=set)

    def __getitem__(self, key: str) -> Any:
        return self.holds[key]

    @property
    def queue_mode(self) -> bool:
        return self["enableSqsTerminationDraining"]


def installation(values: dict[str, Any]) -> Installation:
    """Reads the values, and reports every problem at once."""
    manifest, values = manifests.unwrapped(values)
    under, values = unwrapped(values)
    nth = Installation(manifest, under)
    problems: list[str] = []
    for name, value in flattened(values, problems):
        if name not in CHART:
            nth.given.append(Given(name, value, None, nearest=nearest(name, [*CHART, *VARIABLES])))
            continue
        nth.holds[name] = taken(name, value, name, problems)
        # Each of its variables is given by itself.
        if name != "extraEnv" or not nth["extraEnv"]:
            nth.given.append(Given(name, value, name))
    if not own_keys(values) and (unknown := [one for one in nth.given if one.key is None]):
        names = [one.name + (f" (is it {one.nearest}?)" if one.nearest else "") for one in unknown[:5]]
        raise Unusable(f"these are not NTH's values: none is NTH's own, and its chart does not know {', '.join(names)}")
    for entry in nth["extraEnv"]:
        add_variable(entry, nth, problems)
    if problems:
        raise Unusable("\n".join(["not every value can be read:", *problems]))
    return nth


def unwrapped(values: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Values of NTH under its key in an umbrella chart."""
    inner = [key for key, value in values.items() if isinstance(value, dict) and key not in CHART and own_keys(value)]
    if own_keys(values) or len(inner) != 1:
        return None, values
    return inner[0], values[inner[0]]


def own_keys(values: dict[str, Any]) -> set[str]:
    return ({key.split(".")[0] for key in CHART} - COMMON) & set(values)


def flattened(values: dict[str, Any], problems: list[str]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        if key not in GROUPS:
            found.append((str(key), value))
        elif value is None:
            found += [(name, None) for name in CHART if name.startswith(f"{key}.")]
        elif isinstance(value, dict):
            found += [(f"{key}.{inner}", inner_value) for inner, inner_value in value.items()]
        else:
            problems.append(f"{key} has to be a map, and is {named(value)}")
    return found


def placeholder(value: Any) -> str | None:
    found = PLACEHOLDER.search(json.dumps(value, default=str, ensure_ascii=False))
    return found[0] if found else None


def as_whole(value: Any) -> int | None:
    """Helm writes large numbers as 1.728e+05."""
    try:
        return int(float(value)) if not isinstance(value, bool) and float(value) == int(float(value)) else None
    except (TypeError, ValueError, OverflowError):
        return None


# Names of the kinds, and how NTH takes a value of each; None if it cannot.
KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "flag": ("true or false", lambda value: FLAGS.get(str(value))),
    "number": ("a whole number", as_whole),
    "text": ("a text", lambda value: None if isinstance(value, (bool, dict, list)) else str(value)),
    "map": ("a map", lambda value: value if isinstance(value, dict) else None),
    "list": ("a list", lambda value: value if isinstance(value, list) else None),
}


def taken(name: str, value: Any, key: str, problems: list[str]) -> Any:
    """The value as NTH takes it. `null` and an empty text take the default."""
    known = (CHART | VARIABLES)[key]
    if value is None or value == "":
        return known.default
    kind, read = KINDS[known.kind]
    found = read(value)
    if (key in CHOICES or known.kind in ("flag", "number")) and (word := placeholder(value)):
        problems.append(f"{name} has the placeholder {word}: write the value that takes its place")
    elif name == "enableSqsTerminationDraining" and isinstance(value, str) and found is False:
        problems.append(f'{name} is the text "{value}", which Helm takes for true; write it without quotes')
    elif found is None:
        shown = f' "{value}"' if isinstance(value, str) else ""
        problems.append(f"{name} has to be {kind}, and is {named(value)}{shown}")
    else:
        return found
    return known.default


def add_variable(entry: Any, nth: Installation, problems: list[str]) -> None:
    """Applies one entry of `extraEnv`, which wins over the chart's own variable."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        problems.append("each entry of extraEnv has to be a map with a name")
        return
    name = entry["name"]
    key = VALUE_OF_VARIABLE.get(name, name)
    written = entry.get("value") if "valueFrom" not in entry else {"valueFrom": entry["valueFrom"]}
    if key not in nth.holds and not name.startswith(NOT_NTHS):
        nth.given.append(Given(name, written, None, True, nearest(name, [*VALUE_OF_VARIABLE, *VARIABLES])))
        return
    nth.given.append(Given(name, written, key, True))
    if key not in nth.holds:
        return
    nth.overridden.add(key)
    if "valueFrom" in entry:
        nth.referred[key] = entry["valueFrom"] if isinstance(entry["valueFrom"], dict) else {}
    else:
        nth.holds[key] = taken(name, written, key, problems)


def nearest(name: str, known: Iterable[str]) -> str | None:
    folded = {one.lower().replace("_", ""): one for one in known}
    close = difflib.get_close_matches(name.lower().replace("_", ""), folded, n=1)
    return folded[close[0]] if close else None
