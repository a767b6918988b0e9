"""The parameters as `sam deploy` takes them: on its command line, or from samconfig.toml."""

from __future__ import annotations

import json
import re
import shlex

from cli import Failed, files

ENVIRONMENT = "from-nth"
# As SAM's own expressions have it (samcli/cli/types.py): what a quoted value may be, and what is unescaped in it.
QUOTED = {'"': re.compile(r'"(?:\\.|[^"\\]+)*"'), "'": re.compile(r"'(?:\\.|[^'\\]+)*'")}
# A parameter as `section` writes it.
PAIR = re.compile(r'\s+("(?:\\.|[^"\\])*"),\n?')
PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+-]+")


class Unsayable(Failed):
    """SAM has no way to be told this value."""


def overrides(parameters: dict[str, str]) -> str:
    return " ".join(["--parameter-overrides", *(shlex.quote(pair(name, value)) for name, value in parameters.items())])


def with_section(text: str, parameters: dict[str, str]) -> str:
    """A samconfig.toml in which our section stands once, with these parameters; all else in it stays as it is."""
    others, ours = _parted(text)
    if ours and re.search("\"\"\"|'''", text):
        # A line within a text may look like a table.
        raise Unsayable(f"samconfig.toml has texts of several lines: take its section {ENVIRONMENT} out by hand")
    rest = "".join(others).rstrip("\n")
    return (rest + "\n" if rest else "version = 0.1\n") + section(parameters)


def parameters_of(text: str) -> dict[str, str] | None:
    """The parameters of our section, as it writes them; None if there is none."""
    _, ours = _parted(text)
    pairs = [json.loads(found[1]).partition("=") for line in ours if (found := PAIR.fullmatch(line))]
    return {name: unescaped(value[1:-1]) if value[:1] in QUOTED else value for name, _, value in pairs} if ours else None


def section(parameters: dict[str, str]) -> str:
    """Our section of samconfig.toml: the repository's own, with the parameters."""
    settings, table = {}, ""
    for line in (files.root() / "samconfig.toml").read_text().splitlines():
        table = line if line.startswith("[") else table
        if table in ("[default.global.parameters]", "[default.deploy.parameters]") and " = " in line:
            settings[line.partition(" = ")[0]] = f"{line}\n"
    pairs = [f"    {json.dumps(pair(name, value), ensure_ascii=False)},\n" for name, value in parameters.items()]
    lines = [f"\n[{ENVIRONMENT}.deploy.parameters]\n", *settings.values(), "parameter_overrides = [\n", *pairs, "]\n"]
    return "".join(lines)


def _parted(text: str) -> tuple[list[str], list[str]]:
    """The lines of others, and those of our section."""
    parts: tuple[list[str], list[str]] = ([], [])
    is_ours = False
    for line in text.splitlines(keepends=True):
        is_ours = line.startswith(f"[{ENVIRONMENT}.") if line.startswith("[") else is_ours
        parts[is_ours].append(line)
    return parts


def pair(name: str, value: str) -> str:
    if PLAIN.fullmatch(value):
        return f"{name}={value}"
    for quote, pattern in QUOTED.items():
        written = quote + re.sub(rf"\\(?=[ '\"])|{quote}", lambda found: "\\" + found[0], value) + quote
        if pattern.fullmatch(written) and unescaped(written[1:-1]) == value:
            return f"{name}={written}"
    raise Unsayable(f"SAM cannot be told this value of {name}: it has a quote behind a backslash. Set it in the CloudFormation console")


def unescaped(written: str) -> str:
    return written.replace("\\ ", " ").replace('\\"', '"').replace("\\'", "'")
