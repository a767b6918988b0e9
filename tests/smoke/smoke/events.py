"""Real events, and how their shape differs from the samples in events/.

The samples are copied from documents. What a real account sends is better: `--record` keeps it.
"""

import json
import re
from pathlib import Path
from typing import Any


def shape(value: Any) -> Any:
    """What of a value is the same in each event of a kind: names of fields and types, no contents."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        # What is in the list, however often.
        return [json.loads(one) for one in sorted({json.dumps(shape(one), sort_keys=True) for one in value})]
    return type(value).__name__


def differences(ours: Any, theirs: Any, at: str = "") -> list[str]:
    """Where the shape of a real event is not that of a sample."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = [f"{at}.{key}: only in the sample" for key in sorted(ours.keys() - theirs.keys())]
        found += [f"{at}.{key}: only in the real event" for key in sorted(theirs.keys() - ours.keys())]
        for key in sorted(ours.keys() & theirs.keys()):
            found += differences(ours[key], theirs[key], f"{at}.{key}")
        return found
    return [] if ours == theirs else [f"{at}: {json.dumps(ours)} in the sample, {json.dumps(theirs)} in the real event"]


def nearest(event: dict[str, Any], samples: dict[str, dict[str, Any]]) -> tuple[str, list[str]] | None:
    """The sample of the same source and type that is least different, and how."""
    same = {
        name: differences(shape(sample), shape(event))
        for name, sample in samples.items()
        if (sample.get("source"), sample.get("detail-type")) == (event.get("source"), event.get("detail-type"))
    }
    return min(same.items(), key=lambda one: len(one[1])) if same else None


def scrubbed(text: str, account: str) -> str:
    """Without the account, and without ids by which it could be found."""
    text = text.replace(account, "123456789012")
    return re.sub(r"\bi-[0-9a-f]{8,17}\b", "i-1234567890abcdef0", text)


def keep(events: list[dict[str, Any]], into: Path, account: str) -> None:
    """One file for each kind of event, the first that came."""
    into.mkdir(parents=True, exist_ok=True)
    for event in reversed(events):
        name = re.sub(r"[^a-z0-9]+", "-", f"{event['source']} {event['detail-type']}".lower())
        (into / f"{name}.json").write_text(scrubbed(json.dumps(event, indent=2), account) + "\n")
