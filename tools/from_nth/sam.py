"""The parameters as `sam deploy` takes them: on its command line, or from samconfig.toml."""

import json
import re
import shlex
import tomllib
from pathlib import Path

SAMCONFIG = Path(__file__).parents[2] / "samconfig.toml"
ENVIRONMENT = "from-nth"
# As SAM's own expressions have it (samcli/cli/types.py): what a quoted value may be, and what is unescaped in it.
QUOTED = {'"': re.compile(r'"(?:\\.|[^"\\]+)*"'), "'": re.compile(r"'(?:\\.|[^'\\]+)*'")}
PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+-]+")


class Unsayable(Exception):
    """SAM has no way to be told this value."""


def overrides(parameters: dict[str, str]) -> str:
    """Words for a shell."""
    return " ".join(["--parameter-overrides", *(shlex.quote(pair(name, value)) for name, value in parameters.items())])


def with_section(text: str, parameters: dict[str, str]) -> str:
    """A samconfig.toml in which our section stands once, with these parameters; all else in it stays as it is."""
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unsayable(f"it is broken TOML, so that nothing is changed in it: {error}") from None
    kept, ours = [], False
    for line in text.splitlines(keepends=True):
        if line.startswith("["):
            ours = line.startswith(f"[{ENVIRONMENT}.")
        if not ours:
            kept.append(line)
    rest = "".join(kept).rstrip("\n")
    changed = (rest + "\n" if rest else "version = 0.1\n") + section(parameters)
    # A line within a text may look like a table.
    expected = {"version": 0.1} | before | {ENVIRONMENT: tomllib.loads(section(parameters))[ENVIRONMENT]}
    try:
        sound = tomllib.loads(changed) == expected
    except tomllib.TOMLDecodeError:
        sound = False
    if not sound:
        raise Unsayable(f"its section {ENVIRONMENT} cannot be told from the rest: take it out by hand")
    return changed


def parameters_of(text: str) -> dict[str, str] | None:
    """The parameters of our section; None if there is none, or if it cannot be read."""
    try:
        written = tomllib.loads(text)[ENVIRONMENT]["deploy"]["parameters"].get("parameter_overrides", [])
        pairs = [word.partition("=") for word in written]
    except (tomllib.TOMLDecodeError, KeyError, AttributeError):
        return None
    return {name: unescaped(value[1:-1]) if value[:1] in QUOTED else value for name, _, value in pairs}


def section(parameters: dict[str, str]) -> str:
    """Our section of samconfig.toml: the repository's own, with the parameters."""
    config = tomllib.loads(SAMCONFIG.read_text())["default"]
    settings = config["global"]["parameters"] | config["deploy"]["parameters"]
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items() if name != "parameter_overrides"]
    pairs = [f"    {json.dumps(pair(name, value), ensure_ascii=False)},\n" for name, value in parameters.items()]
    if pairs:
        lines += ["parameter_overrides = [\n", *pairs, "]\n"]
    return "".join([f"\n[{ENVIRONMENT}.deploy.parameters]\n", *lines])


def pair(name: str, value: str) -> str:
    if PLAIN.fullmatch(value):
        return f"{name}={value}"
    for quote, pattern in QUOTED.items():
        written = quote + re.sub(rf"\\(?=[ '\"])|{quote}", lambda found: "\\" + found[0], value) + quote
        if pattern.fullmatch(written) and unescaped(written[1:-1]) == value:
            return f"{name}={written}"
    raise Unsayable(
        f"SAM cannot be told this value of {name}: it has a quote behind a backslash. Set it in the CloudFormation "
        "console"
    )


def unescaped(written: str) -> str:
    return written.replace("\\ ", " ").replace('\\"', '"').replace("\\'", "'")
