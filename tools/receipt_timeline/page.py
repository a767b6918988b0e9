"""A drain's picture, alone on a page or within that of a fleet."""

from __future__ import annotations

from datetime import timedelta
from xml.etree.ElementTree import Element

from cli import counted

from . import lanes
from .bars import bar, css, is_timed, line, picture, span, story, upright
from .drain import Drain
from .groups import MANY, Group, Queue, Row, groups
from .marks import symbol
from .markup import append, element
from .receipt import UNTOUCHED, Fate, Pod
from .scale import MINUTE, Scale, enlarged, whole
from .sheet import badge, legend, sheet
from .words import clock, day_and_clock, duration, moment


def page(drain: Drain) -> str:
    subject = _subject(drain)
    title = element("h1", badge(drain.ending), " ", element("span", subject, class_="subject"))
    return sheet(f"{drain.ending}: {subject}", element("header", title, *about(drain)), element("main", *picture_of(drain)))


def picture_of(drain: Drain, within: str = "") -> list[Element]:
    keys = [_legend(drain)] if drain.leaving else []
    return [_counts(drain, within), *keys, _chart(drain, within), _footer(drain)]


def _subject(drain: Drain) -> str:
    return drain.node or drain.instance or "no instance"


def about(drain: Drain) -> list[Element]:
    parts = [element("p", _sentence(drain.reason, drain), class_="reason")]
    if drain.missing:
        parts.append(element("p", f"The file has {drain.missing}.", class_="dry-run"))
    if drain.dry_run:
        parts.append(element("p", "A dry run: nothing was changed.", class_="dry-run"))
    facts = element("dl")
    for name, value in _facts(drain):
        append(facts, element("div", element("dt", name), element("dd", value)))
    return [*parts, facts]


def _sentence(text: str, drain: Drain) -> str:
    """The reason; the name that stands above it is not said again."""
    for kind, name in (("node", drain.node), ("instance", None if drain.node else drain.instance)):
        text = text.replace(f"{kind} {name}", f"the {kind}") if name else text
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _facts(drain: Drain) -> list[tuple[str, str]]:
    facts = [
        ("Error", drain.error),
        ("Notice", _notice(drain)),
        ("Node claimed", _moment(drain, drain.step_ms("claimed"))),
        ("Drain over", _moment(drain, drain.drained_ms)),
        ("Instance goes" if drain.deadline_ms is not None else "Longest wait over", _moment(drain, drain.limit_ms)),
        ("Instance", " in ".join(filter(None, [drain.instance_type, drain.zone]))),
        ("Instance id", drain.instance if drain.node else None),
        ("Cluster", drain.cluster),
        ("Group", drain.group),
        ("Managed by", drain.managed_by),
        ("Decision", drain.decision),
        ("Hook", drain.hook and f"{drain.hook.name}, {lanes.hook_in_words(drain)}"),
    ]
    return [(name, value) for name, value in facts if value]


def _notice(drain: Drain) -> str:
    before = f"{duration(drain.announced_ms)} before the drain began" if drain.announced_ms else None
    return ", ".join(filter(None, [drain.kind, drain.noticed and day_and_clock(drain.noticed), before]))


def _moment(drain: Drain, at_ms: int | None) -> str | None:
    if at_ms is None or drain.time is None:
        return None
    digits = 1 if at_ms % 1000 and at_ms < MINUTE else 0
    is_same_day = (drain.time + timedelta(milliseconds=at_ms)).date() == drain.time.date()
    at = f"{clock(drain.time, at_ms, digits)} UTC" if is_same_day else day_and_clock(drain.time, at_ms)
    return f"{at}, after {duration(at_ms)}"


def _counts(drain: Drain, within: str) -> Element:
    counts = element("nav", class_="counts")
    if not drain.pods:
        append(counts, element("span", "No pod was touched."))
    for group in groups(drain):
        fate = group.pods[0].fate
        words = f"{len(group.pods)} {group.name.lower()}"
        append(counts, element("a", symbol(css(fate)), words, href=f"#{within}{_anchor(group)}", class_=css(fate)))
    return counts


def _chart(drain: Drain, within: str) -> Element:
    if drain.time is None:
        return element("p", "The notice has no time, so that nothing can be drawn.", class_="empty")
    scale = enlarged(drain)
    chart = element("div", lanes.lines(drain, scale), class_="chart")
    append(chart, element("section", lanes.window(drain, whole(drain), scale), class_="above"))
    append(chart, lanes.axis(scale, drain.zero, drain.time))
    append(chart, lanes.hook(drain, scale))
    for lane in lanes.invocations(drain, scale):
        append(chart, lane)
    if len(drain.leaving) > MANY:
        append(chart, lanes.left_when(drain, scale))
    for group in groups(drain):
        append(chart, _group(group, drain, scale, within))
    return chart


def _anchor(group: Group) -> str:
    return group.name.lower().replace(" ", "-").replace(",", "")


def _group(group: Group, drain: Drain, scale: Scale, within: str) -> Element:
    heading = [
        symbol(css(group.pods[0].fate)),
        element("strong", group.name),
        element("span", f" {counted(len(group.pods), 'pod')}: {group.meaning}"),
    ]
    rows = [_row(row, drain, scale, group.is_folded) for row in group.rows()]
    place = f"{within}{_anchor(group)}"
    if group.is_folded:
        return element("details", element("summary", *heading), *rows, id=place, class_="group")
    return element("section", element("h2", *heading), *rows, id=place, class_="group")


def _row(row: Row, drain: Drain, scale: Scale, is_short: bool) -> Element:
    return _queue(row, drain, scale) if isinstance(row, Queue) else _pod(row, drain, scale, is_short)


def _queue(queue: Queue, drain: Drain, scale: Scale) -> Element:
    one = queue.as_one()
    fate = element("span", one.fate.value, class_=f"fate {css(one.fate)}")
    named = element("div", f"{len(queue.pods)} pods of budget {queue.budget}", " ", fate, class_="name")
    folded = [_pod(pod, drain, scale, is_short=True) for pod in queue.pods]
    summary = element("summary", named, bar(one, drain, scale), lanes.note(_queue_in_words(queue, one)), class_="row")
    return element("details", summary, *folded, class_="queue")


def _queue_in_words(queue: Queue, one: Pod) -> str:
    if one.accepted_ms is None or one.requested_ms is None:
        return f"budget {queue.budget} blocked them to the end"
    gone = f" · the last gone at {moment(one.gone_ms)}" if one.gone_ms is not None else ""
    return f"the last of them was blocked for {duration(one.accepted_ms - one.requested_ms)}{gone}"


def _pod(pod: Pod, drain: Drain, scale: Scale, is_short: bool) -> Element:
    """A pod's row; a short one has no room for its whole story, which stands in its picture's title."""
    namespace, _, name = pod.name.rpartition("/")
    whose = element("span", f"{namespace}/", class_="namespace") if namespace else None
    gone = f", gone at {moment(pod.gone_ms)}" if is_short and pod.gone_ms is not None else ""
    fate = element("span", f"{pod.fate.value}{gone}", class_=f"fate {css(pod.fate)}")
    named = element("div", element("span", whose, name, class_="pod"), " ", fate, class_="name")
    if pod.fate in UNTOUCHED:
        return element("div", named, element("p", element("span", pod.why or "")), class_="row untouched")
    if is_short:
        return lanes.row(named, bar(pod, drain, scale), class_="short")
    return lanes.row(named, bar(pod, drain, scale), story(pod))


def _legend(drain: Drain) -> Element:
    example, leaving = Scale(0, 100), drain.leaving
    are_timed = any(is_timed(pod) for pod in leaving)
    bar_of = {name: span(example, 5, 95, name) for name in ("leaving clean", "unknown clean")}
    wide = {name: span(example, 5, 95, name, y=3 if name in ("asked", "blocked") else 2, height=12 if name in ("asked", "blocked") else 14)
            for name in ("asked", "blocked", "grace", "missing")}  # fmt: skip
    keys = [
        (True, upright(example, 50, "claimed"), "node claimed, drain over"),
        (are_timed, line(example, 5, 95, "waiting"), "waiting for its turn"),
        (are_timed, wide["asked"], "eviction requested"),
        (any(pod.refusals for pod in leaving), wide["blocked"], "blocked by a budget (PDB)"),
        (are_timed, bar_of["leaving clean"], "shutting down"),
        (are_timed, wide["grace"], "the grace it was given"),
        (any(pod.given_s for pod in leaving), wide["missing"], "what it asks for beyond"),
        (not all(is_timed(pod) for pod in leaving), bar_of["unknown clean"], "until its end: no more is known"),
        (any(pod.fate is Fate.UNCONFIRMED for pod in leaving), line(example, 5, 95, "unsure"), "nobody knows"),
        (drain.limit_ms is not None, upright(example, 50, "limit"), lanes.limit_in_words(drain)),
    ]
    return legend([(is_used, picture(drawn, class_="key"), meaning) for is_used, drawn, meaning in keys])


def _footer(drain: Drain) -> Element:
    found = element("details", element("summary", "In the log"))
    append(found, element("p", f"Event id {drain.event_id or 'unknown'}, request ids {', '.join(drain.request_ids)}"))
    for receipt in drain.receipts:
        append(found, element("p", f"{receipt.request_id}: {receipt.ending}: {receipt.reason}"))
    return element("footer", found)
