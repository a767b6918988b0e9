"""Drains as an HTML page that loads and runs nothing: a section for each drain, with a bar for each pod. Pure."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Union
from xml.etree.ElementTree import Element, tostring

from cli import counted

from .drain import Drain
from .receipt import UNTOUCHED, Fate, Pod
from .text import facts, heading, in_order, notes, story
from .words import day_and_clock, duration

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# More pods of a good fate than these are folded.
MANY = 20
GOOD = (Fate.CLEAN, *UNTOUCHED)
# A deadline this many times later than the end of the drain is not drawn.
FAR = 3
STYLE = """
:root { color-scheme: light dark; }
body { max-width: 1000px; margin: 20px auto; padding: 0 16px; font: 15px/1.4 system-ui, sans-serif; }
code, small, p, dd { overflow-wrap: anywhere; }
h1, h2 { font-size: 20px; }
section { margin-top: 32px; }
p, dl { margin: 4px 0; }
dl { display: grid; grid-template-columns: 90px 1fr; }
dd { margin: 0; }
dt, small { opacity: 0.75; }
th, td { padding: 2px 12px 2px 0; text-align: left; }
summary { margin-top: 14px; font-weight: bold; }
.pod { margin: 6px 0 6px 14px; }
.bar { position: relative; height: 12px; margin: 2px 0; background: #8882; }
.bar i { position: absolute; top: 0; height: 100%; background: currentColor; }
.bar .waiting, .key .waiting { background: #8888; }
.bar .blocked, .key .blocked { background: repeating-linear-gradient(45deg, #7346ad 0 3px, #a88fd0 3px 6px); }
.bar .limit, .key .limit { width: 2px; background: #d3203d; }
.key i { display: inline-block; width: 24px; height: 10px; margin-left: 12px; background: #1d8a78; }
.lost, .unconfirmed { color: #d3203d; }
.forced, .would-be-blocked { color: #c9600f; }
.clamped { color: #a87400; }
.clean { color: #1d8a78; }
.remaining { color: #2f74d0; }
"""
Child = Union[Element, str]


def page(drains: list[Drain]) -> str:
    """One drain, or several with a table before them, those that lost pods first."""
    drains = sorted(drains, key=lambda drain: (drain.ending != "failed", -_lost(drain)))
    title = heading(drains[0]) if len(drains) == 1 else _summary(drains)
    head = _element(
        "head",
        _element("meta", charset="utf-8"),
        _element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        _element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _element("title", title),
        _element("style", STYLE),
    )
    table = [_element("h1", title), _table(drains)] if len(drains) > 1 else []
    sections = [_section(drain, f"drain-{number}") for number, drain in enumerate(drains)]
    html = _element("html", head, _element("body", *table, *sections), lang="en")
    return f"<!doctype html>\n{tostring(html, encoding='unicode', method='html')}\n"


def _element(tag: str, *children: Child, **attributes: str) -> Element:
    """An element. Text is escaped when the page is written, so nothing in a receipt becomes markup."""
    made = Element(tag, {name.strip("_").replace("_", "-"): value for name, value in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + child
        else:
            made.text = (made.text or "") + child
    return made


def _summary(drains: list[Drain]) -> str:
    endings = ", ".join(f"{number} {ending}" for ending, number in Counter(drain.ending for drain in drains).items())
    return f"{counted(len(drains), 'drain')}: {endings}; {counted(sum(map(_lost, drains)), 'pod')} lost"


def _lost(drain: Drain) -> int:
    return sum(pod.fate is Fate.LOST for pod in drain.pods)


def _table(drains: list[Drain]) -> Element:
    names = ("Ending", "Node", "Cluster", "Zone", "Notice", "At", "Cordoned after", "Over after", "Pods lost")
    rows = [_element("tr", *(_element("th", name) for name in names))]
    for number, drain in enumerate(drains):
        claimed, incomplete = drain.step_ms("claimed"), ", lines are missing" if drain.missing else ""
        when = day_and_clock(drain.noticed) if drain.noticed else ""
        cells: list[Child] = [
            _element("b", drain.ending, class_=_colour(drain)),
            _element("a", drain.node or drain.instance or "no instance", href=f"#drain-{number}"),
            *(drain.cluster or "", drain.zone or "", drain.kind or "", when),
            *("" if claimed is None else duration(claimed), duration(drain.over_ms), f"{_lost(drain)}{incomplete}"),
        ]
        rows.append(_element("tr", *(_element("td", cell) for cell in cells)))
    return _element("table", *rows)


def _colour(drain: Drain) -> str:
    return "lost" if drain.ending == "failed" else ""


def _section(drain: Drain, name: str) -> Element:
    parts = [_element("h2", heading(drain), class_=_colour(drain)), *(_element("p", note) for note in notes(drain))]
    of_facts = (_element(tag, text) for pair in facts(drain) for tag, text in zip(("dt", "dd"), pair))
    parts.append(_element("dl", *of_facts))
    to_ms = _drawn_ms(drain)
    if any(pod.fate not in UNTOUCHED for pod in drain.pods):
        parts.append(_key(drain, to_ms))
    for fate, of_fate in groupby(in_order(drain.pods), key=lambda pod: pod.fate):
        pods = list(of_fate)
        is_open = {} if fate in GOOD and len(pods) > MANY else {"open": ""}
        summary = _element("summary", f"{len(pods)} {fate.value}", class_=fate.value)
        parts.append(_element("details", summary, *(_row(pod, drain, to_ms) for pod in pods), **is_open))
    return _element("section", *parts, id=name)


def _drawn_ms(drain: Drain) -> int:
    """End of the bars: the deadline, unless the drain was over long before it."""
    end = max([drain.over_ms, *(pod.gone_ms or 0 for pod in drain.pods), 1])
    return max(end, drain.limit_ms) if drain.limit_ms is not None and drain.limit_ms < end * FAR else end


def _key(drain: Drain, to_ms: int) -> Element:
    zero = "notice" if drain.time == drain.noticed else "begin of the drain"
    words = [("waiting", "before its eviction"), ("blocked", "blocked by a budget"), ("leaving", "shutting down")]
    marks: list[Child] = [part for name, word in words for part in (_element("i", class_=name), f" {word}")]
    if drain.limit_ms is not None and drain.limit_ms <= to_ms:
        marks += [_element("i", class_="limit"), " deadline"]
    return _element("p", f"From the {zero} to {duration(to_ms)}:", *marks, class_="key")


def _row(pod: Pod, drain: Drain, to_ms: int) -> Element:
    parts: list[Child] = [_element("code", pod.name)]
    if pod.fate not in UNTOUCHED:
        parts.append(_bar(pod, drain, to_ms))
    return _element("div", *parts, _element("small", f" {story(pod)}"), class_="pod")


def _bar(pod: Pod, drain: Drain, to_ms: int) -> Element:
    """Before and after the API server accepted the eviction. A pod that nobody evicted was leaving already."""
    claimed = drain.step_ms("claimed") or 0
    ended = pod.gone_ms if pod.gone_ms is not None else drain.over_ms
    accepted = pod.accepted_ms if pod.accepted_ms is not None else ended if pod.evictions else claimed
    before = "blocked" if pod.refusals else "waiting"
    drawn = [_span(before, claimed, accepted, to_ms), _span("leaving", accepted, ended, to_ms)]
    if drain.limit_ms is not None and drain.limit_ms <= to_ms:
        drawn.append(_element("i", class_="limit", style=f"right:{_percent(to_ms - drain.limit_ms, to_ms)}"))
    return _element("div", *drawn, class_=f"bar {pod.fate.value}")


def _span(name: str, begin_ms: int, end_ms: int, to_ms: int) -> Element:
    left, width = _percent(begin_ms, to_ms), _percent(end_ms - begin_ms, to_ms)
    return _element("i", class_=name, style=f"left:{left};width:{width}")


def _percent(ms: int, of_ms: int) -> str:
    return f"{min(max(ms / of_ms, 0), 1):.2%}"
