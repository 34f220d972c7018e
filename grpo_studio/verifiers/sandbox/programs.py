"""Runs a program on inputs, one sandbox for all of them, and gives back what it printed for each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from grpo_studio.verifiers.sandbox.box import Box, BoxEnded, BoxOverLimit, BoxTimeout
from grpo_studio.verifiers.sandbox.command import Limits
from grpo_studio.verifiers.sandbox.inside import wire
from grpo_studio.verifiers.sandbox.level import LevelName, way


@dataclass(frozen=True)
class Printed:
    """The output for one input; `trouble` says what went wrong, and is empty when the program ended well."""

    output: str
    trouble: str = ""


def run_program(
    code: str, inputs: Sequence[str], limits: Limits, seconds: float, force: LevelName | None = None
) -> list[Printed]:
    """One result for each input, in order; past the time limit, which is for all of them, the rest have trouble."""
    done: list[Printed] = []
    with Box(way(force), "script", limits) as box:
        deadline = time.monotonic() + seconds
        try:
            box.send(code.encode("utf-8", "surrogatepass"), deadline)
            loaded = wire.decode(box.receive(deadline))
            if loaded[0] != "loaded":
                return [Printed("", str(loaded[1]))] * len(inputs)
            for text in inputs:
                box.send(wire.encode(text.encode("utf-8", "surrogatepass")), deadline)
                done.append(_printed(wire.decode(box.receive(deadline)), limits))
        except BoxTimeout:
            trouble = "over the time limit"
        except (BoxEnded, BoxOverLimit, wire.NotPlain, TypeError, ValueError) as error:
            trouble = f"the program broke its sandbox: {error}"
        else:
            trouble = ""
    return done + [Printed("", trouble)] * (len(inputs) - len(done))


def _printed(answer: object, limits: Limits) -> Printed:
    if type(answer) is not tuple or len(answer) != 3:
        return Printed("", "the program broke the protocol")
    status, output, errors = answer
    if status == "flood":
        raise BoxOverLimit(f"it printed more than {limits.output} bytes")
    text = bytes(output).decode("utf-8", "replace")
    if status == 0:
        return Printed(text)
    last = bytes(errors).decode("utf-8", "replace").strip().splitlines()[-1:]
    return Printed(text, (last[0] if last else f"exit status {status}")[:300])
