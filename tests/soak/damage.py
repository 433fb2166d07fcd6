"""Damage to files, as disks, kills and hands do it: bits and stretches that are changed, lost, repeated or added."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

Change = Callable[[Random, bytearray], bytes | bytearray]

LONGEST_STRETCH = 64


def _stretch(random: Random, content: bytearray) -> slice:
    begin = random.randrange(len(content))
    return slice(begin, min(len(content), begin + random.randint(1, LONGEST_STRETCH)))


def flip(random: Random, content: bytearray) -> bytearray:
    for _ in range(random.randint(1, 3)):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return content


def truncate(random: Random, content: bytearray) -> bytearray:
    return content[: random.randrange(len(content))]


def extend(random: Random, content: bytearray) -> bytearray:
    return content + random.randbytes(random.randint(1, LONGEST_STRETCH))


def blank(random: Random, content: bytearray) -> bytearray:
    part = _stretch(random, content)
    content[part] = bytes(part.stop - part.start)
    return content


def cut_out(random: Random, content: bytearray) -> bytearray:
    del content[_stretch(random, content)]
    return content


def repeat(random: Random, content: bytearray) -> bytearray:
    part = _stretch(random, content)
    return content[: part.stop] + content[part.start :]


def repeat_line(random: Random, content: bytearray) -> bytes:
    lines = content.splitlines(keepends=True)
    lines.insert(random.randrange(len(lines) + 1), random.choice(lines))
    return b"".join(lines)


def shuffle_lines(random: Random, content: bytearray) -> bytes:
    lines = content.splitlines(keepends=True)
    random.shuffle(lines)
    return b"".join(lines)


def change_digit(random: Random, content: bytearray) -> bytearray:
    """What no parser notices by itself: a number that is another number."""
    digits = [at for at, byte in enumerate(content) if chr(byte).isdigit()]
    if digits:
        content[random.choice(digits)] = ord(random.choice("0123456789"))
    return content


CHANGES: dict[str, Change] = {
    change.__name__: change
    for change in (
        flip,
        truncate,
        extend,
        blank,
        cut_out,
        repeat,
        repeat_line,
        shuffle_lines,
        change_digit,
    )
}


def damage(random: Random, path: Path) -> str:
    """Damage a file; how."""
    content = bytearray(path.read_bytes())
    name = random.choice(tuple(CHANGES)) if content else "extend"
    path.write_bytes(CHANGES[name](random, content))
    return f"{name} {path.name}"
