"""Messages of the library in the words of the command line: ``memory_limit=…`` is ``--memory`` there."""

from __future__ import annotations

import re

OPTIONS = {
    "algorithm": "--algorithm",
    "combine": "--combine",
    "device": "--device",
    "directed": "--directed",
    "drop_leaves": "--drop-leaves",
    "format": "--format",
    "header": "--header",
    "knobs": "--knob",
    "labels": "--labels",
    "memory_limit": "--memory",
    "order": "--order",
    "relabel": "--relabel",
    "shares": "--shares",
    "source": "--source",
    "target": "--target",
    "threads": "--threads",
    "undefined": "--undefined",
    "weight": "--weight",
    "work_folder": "--work",
    "workers": "--workers",
}
NAMES = "|".join(OPTIONS)
BOTH_ORDERS = (
    # "labels="text" (--labels text)" and "source=…, target=… (--source, --target)": what the brackets say
    re.compile(rf"\b(?:(?:{NAMES})=[^ ]*(?:, | and )?)+ \((--[^)]+)\)"),
    # "--restart (resume=False)": what stands before the brackets
    re.compile(r"(--[\w-]+) \(\w+=[^)]*\)"),
    # "(--work, work_folder=)"
    re.compile(rf"(\(--[\w-]+), (?:{NAMES})=(?=\))"),
    # "header=True or --header yes"
    re.compile(rf"\b(?:{NAMES})=\w+ or (--[\w-]+ \w+)"),
)
LIMIT = re.compile(r"limits=Limits\((\w+)=…\)")
KEYWORD = re.compile(rf"(?<=[\s(])({NAMES})=(?:(['\"])([\w.-]+)\2|(\w+|…))")
LEFT_OUT = re.compile(rf"\bleave (?:the )?((?:{NAMES})(?: and (?:{NAMES}))*) out\b|(?<=leave out: )([\w, ]+)$")
LEADING = re.compile(rf"^({NAMES})(?= is (?:at least|one of)\b)|\braise ({NAMES})\b")


def in_options(message: str) -> str:
    """The message with options in place of keywords.

    Examples
    --------
    >>> in_options("take device='cpu', or raise memory_limit")
    'take --device cpu, or raise --memory'
    >>> in_options('read it with labels="text" (--labels text) if labels are names')
    'read it with --labels text if labels are names'
    """
    for pattern in BOTH_ORDERS:
        message = pattern.sub(r"\1", message)
    message = LIMIT.sub(r"--limit \1=…", message)
    message = KEYWORD.sub(_option, message.replace("weights=…, or ", ""))
    message = LEFT_OUT.sub(_left_out, message)
    return LEADING.sub(lambda found: found[0].replace(found[1] or found[2], OPTIONS[found[1] or found[2]]), message)


def _left_out(found: re.Match[str]) -> str:
    """Names of keywords that are to be left out, as options."""
    if found[1] is None:
        return ", ".join(OPTIONS.get(name, name) for name in found[2].split(", "))
    return f"leave out {' and '.join(OPTIONS[name] for name in found[1].split(' and '))}"


def _option(found: re.Match[str]) -> str:
    """``name=value`` as it is typed; flags have no value."""
    value = found[3] or found[4]
    return OPTIONS[found[1]] if value == "True" else f"{OPTIONS[found[1]]} {value}"
