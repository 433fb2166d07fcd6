"""A worker process of this machine: batches of tasks are lines of its standard input, and what it says are lines too.

    ready            it has imported all that it needs, and takes batches
    alive            every half a second, so that a worker that stands still is noticed
    partial RESULT   what was finished of a batch on the way
    done RESULT      all of it
    failed TEXT      any other error than a `WedgewiseError`, which ended a batch, as a JSON text

It ends with the process that started it, however that ends: its input ends, or nobody reads what it says.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Iterable

READY, ALIVE, PARTIAL, DONE, FAILED = b"ready", b"alive", b"partial", b"done", b"failed"
BEAT_SECONDS = 0.5


def main() -> None:
    """What a worker process runs; whatever else is printed in it goes to its log."""
    lines_in, output = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.close(nothing)
    with open(lines_in, "rb") as lines:
        serve(lines, output)


def serve(batches: Iterable[bytes], output: int) -> None:
    """Do batches until there are no more; `output` is the descriptor of a pipe."""
    speaker, ended = Speaker(output), threading.Event()
    beating = threading.Thread(target=_beat, args=(speaker, ended), daemon=True)
    beating.start()
    try:
        from wedgewise.run._worker_requests import do_request

        speaker.say(READY)
        for message in batches:
            try:
                result = do_request(message.decode(), progress=lambda result: speaker.say(PARTIAL, result))
            except Exception as error:
                traceback.print_exc()
                speaker.say(FAILED, json.dumps(f"{type(error).__name__}: {error}").encode())
            else:
                speaker.say(DONE, result)
    finally:
        ended.set()
        beating.join()


class Speaker:
    """Writes whole lines, whichever thread says them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._one_at_a_time = descriptor, threading.Lock()

    def say(self, kind: bytes, text: bytes = b"") -> None:
        """Write one line."""
        left = memoryview(kind + b" " + text + b"\n")
        with self._one_at_a_time:
            while left:
                left = left[os.write(self._descriptor, left) :]


def _beat(speaker: Speaker, ended: threading.Event) -> None:
    """Give signs of life; without anybody who hears them, end the process, whatever it is at."""
    try:
        while not ended.wait(BEAT_SECONDS):
            speaker.say(ALIVE)
    except OSError:
        os._exit(1)
