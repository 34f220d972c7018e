"""Items a second of every verifier, beside TRL's accuracy_reward and math-verify where those have the same job.

    python -m bench.verifiers [ROUNDS] [VERIFIER ...]

All contestants are warm and take turns, and the medians of their rounds are printed: through the judge (with as many
child processes as cores), the function called directly in this process, and TRL and math-verify in this process. Each
judges the same rows. The last lines hold the figures against what they must reach.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.verifier_rows import BATCH, Rows, rows_for
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers import VerifierSpec, discover
from grpo_studio.verifiers.judge import Judge, JudgeRequest

JUDGED, DIRECT, TRL, ALONE = "judge", "direct", "accuracy_reward", "math-verify"
LIMIT = 5.0
HANGS = '''
from grpo_studio.verifiers import verifier

@verifier(examples=[("fine", {}, 1.0)])
def hangs(completion: str):
    """Hangs when it is told to."""
    while completion == "hang":
        pass
    return 1.0
'''
Rates = dict[tuple[str, str], list[float]]


def main(rounds: int, only: Sequence[str]) -> None:
    found = discover([BUNDLED_REWARDS])
    for failure in found.failures:
        print(f"{failure.path.name} cannot be measured: {failure.message}")
    specs = []
    for spec in found.specs.values():
        if spec.place != "judge":
            print(f"{spec.name} is not measured: it is scored by the trainer on its device")
        elif not only or spec.name in only:
            specs.append(spec)
    rates: Rates = {}
    with contextlib.ExitStack() as stack:
        judges = [stack.enter_context(_judge(spec)) for spec in specs]
        for number in range(rounds + 1):
            for spec, judge in zip(specs, judges, strict=True):
                for kind, (items, run) in _contestants(spec, judge, rows_for(spec, number)).items():
                    began = time.perf_counter()
                    run()
                    if number:  # the first round warms up
                        rates.setdefault((spec.name, kind), []).append(items / (time.perf_counter() - began))
    report(rates, {spec.name: len(rows_for(spec, 0).completions) for spec in specs})
    if not only:
        report_hanging()


def _judge(spec: VerifierSpec) -> Judge:
    params = rows_for(spec, 0).params
    if spec.warm is not None:
        spec.warm(**spec.with_defaults(params))  # for the direct calls
    return Judge([JudgeRequest(spec.name, params)], [BUNDLED_REWARDS], time_limit=30.0)


def _contestants(spec: VerifierSpec, judge: Judge, rows: Rows) -> dict[str, tuple[int, Callable[[], object]]]:
    """What takes part in a round, with the number of items that it judges."""
    completions, columns, size = rows.completions, rows.columns, len(rows.completions)

    def judged() -> None:
        [scores] = judge.score(completions, columns)
        troubled = [score for score in scores if score.outcome not in ("ok", "abstained")]
        if troubled:
            raise SystemExit(f"{spec.name} cannot be measured: {troubled[0]}")

    def directly() -> None:
        for row, completion in enumerate(completions):
            spec.function(completion, **{name: values[row] for name, values in columns.items()}, **rows.params)

    contestants: dict[str, tuple[int, Callable[[], object]]] = {JUDGED: (size, judged), DIRECT: (size, directly)}
    if rows.boxed:
        # They are slow: every fourth row tells as much.
        texts, golds = completions[::4], [f"${gold}$" for gold in columns["answer"][::4]]
        contestants[TRL] = len(texts), lambda: _trl(texts, golds)
        contestants[ALONE] = len(texts), lambda: _math_verify(texts, golds)
    return contestants


def _trl(texts: Sequence[str], golds: list[str]) -> list[float | None]:
    from trl.rewards import accuracy_reward

    return accuracy_reward([[{"role": "assistant", "content": text}] for text in texts], golds)


def _math_verify(texts: Sequence[str], golds: Sequence[str]) -> list[bool]:
    from math_verify import parse, verify

    return [verify(parse(gold), parse(text)) for gold, text in zip(golds, texts, strict=True)]


def report(rates: Rates, sizes: dict[str, int]) -> None:
    """Print the table, and what must be reached."""
    median = {key: statistics.median(values) for key, values in rates.items()}
    print(f"{'items a second':<20}{'batch':>6}{JUDGED:>10}{DIRECT:>10}{TRL:>17}{ALONE:>13}")
    for name, size in sizes.items():
        cells = [
            f"{median[name, kind]:,.0f}" if (name, kind) in median else "-" for kind in (JUDGED, DIRECT, TRL, ALONE)
        ]
        print(f"{name:<20}{size:>6}{cells[0]:>10}{cells[1]:>10}{cells[2]:>17}{cells[3]:>13}")
    _reached("math_numeric through the judge, items a second", median.get(("math_numeric", JUDGED)), 20_000)
    if ("math_equal", ALONE) in median:
        # The same work in the same process: what the judge adds is in its own column.
        ratio = median["math_equal", DIRECT] / median["math_equal", ALONE]
        _reached("math_equal, its rate over that of math-verify", ratio, 0.8)
    _reached("code_asserts through the judge, items a second", median.get(("code_asserts", JUDGED)), 30)


def report_hanging() -> None:
    """Time a batch of 512 of which 3 hang."""
    texts = ["fine"] * BATCH
    for place in (5, 200, 511):
        texts[place] = "hang"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hangs.py").write_text(HANGS)
        with Judge([JudgeRequest("hangs")], [Path(folder)], time_limit=LIMIT) as judge:
            judge.score(["fine"] * BATCH, {})
            began = time.perf_counter()
            [scores] = judge.score(texts, {})
            spent = time.perf_counter() - began
    scored = sum(score.value == 1.0 for score in scores)
    took = f"{spent:.2f} s, at most {LIMIT + 2:g} s: {_word(spent <= LIMIT + 2)}"
    print(f"{BATCH} items of which 3 hang: {scored} scored 1; {took}")


def _reached(what: str, value: float | None, wanted: float) -> None:
    if value is not None:
        print(f"{what}: {value:,.2f}, at least {wanted:,g}: {_word(value >= wanted)}")


def _word(good: bool) -> str:
    return "reached" if good else "MISSED"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:])
