"""The unit behind a number: what is one, what is none because it changes the number, and one name for each."""

from __future__ import annotations

import re

from grpo_studio.verifiers.symbolic.words import (
    CHANGING_WORDS,
    FUNCTIONS,
    JOINING_WORDS,
    NUMBER_WORDS,
    PERCENT_WORDS,
    SCALE_WORDS,
    UNIT_LETTERS,
    UNITS,
    word_set,
)

_COUNTERS = (
    "个月|ヶ月|か月|개월|小时|小時|時間|时间|시간|分钟|分鐘|分間|秒間|日間|週間|年間|平方米|平方厘米|立方米|厘米|毫米|千米|公里|公斤|千克|毫升|"
    "メートル|センチメートル|キロメートル|グラム|キログラム|リットル|통り|通り|마리|그루|송이|사람|페이지|가지|미터|센티미터|킬로미터|그램|킬로그램|"
    "[개명원분초일주달년살세권장대번병잔점도쪽시회층個个箇人名円元圆块枚本冊册匹只隻头頭台回次度点點时時分秒天日周週月年岁歳才米克升棵支辆位页頁箱袋杯双組组班枝朵件套户戸条張张题題]"
)
# A letter or a short word glued to a number may be a product of variables ('5m', '5ab'). \x00 stands around what was
# a text command.
UNIT = re.compile(
    rf"""(?: [ ]? ° [ ]? [CF]?
          | [ ]? [$€£¥₹₩¢]
          | [ ]* \x00 [^\x00]* \x00 (?: \^\{{?[1-9]\}}? )?
          | [ ]* (?:cm|mm|km|kg|mg|mL|ml|ft|lbs?|oz|hrs?|min|sec|mph|kmh)\b (?: \^\{{?[1-9]\}}? )?
          | [ ]+ [{"".join(sorted(UNIT_LETTERS))}] (?: \^\{{?[1-9]\}}? )?
          | [ ]+ (?: sq[ ][A-Za-z] | [A-Za-z]{{3}} ) [A-Za-z]* (?: [ ][A-Za-z]+ )*
          | [ ]* (?:{_COUNTERS}) )?""",
    re.VERBOSE,
)
# What changes the number that it stands behind is no unit of it. Some words do so only right behind it ('5 of 7').
_SYMBOL = re.compile(rf"[°$€£¥₹₩¢]|{_COUNTERS}")
_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_LETTERS = {*UNIT_LETTERS, "A"}
_OTHER_CHANGING = word_set("choose cube score gross half below above under than less fewer")
_ONLY_FIRST = word_set("of for with without when where all any about most no not but square sq cubic")
_SCALES = {*SCALE_WORDS, *NUMBER_WORDS, "quarter", "score"}
_CHANGING = (
    {
        *CHANGING_WORDS,
        *_SCALES,
        *(word + ending for word in _SCALES for ending in ("s", "th", "ths")),
        *PERCENT_WORDS,
        *_OTHER_CHANGING,
    }
    | {*FUNCTIONS} - UNITS.keys()
) - {"each", "more", *_ONLY_FIRST}


def changes(unit: str) -> bool:
    """Whether what stands behind a number makes another number, or a statement, of it."""
    words = re.findall(r"[a-z]+", unit.casefold())
    if not words:
        name = unit.strip()
        return not _SYMBOL.fullmatch(name) and (len(name) == 1 or _CJK.search(name) is not None)
    measured = len(words) > 1 and words[0] in JOINING_WORDS
    wrong_first = words[0] in _ONLY_FIRST and not measured
    return wrong_first or not _CHANGING.isdisjoint(words) or (len(unit.strip()) == 1 and unit.strip() not in _LETTERS)


def unit_name(unit: str) -> str:
    """One name for the spellings of a unit."""
    known = UNITS.get(unit) or {"원": "₩", "円": "¥"}.get(unit)
    return known or (unit.removesuffix("s") if len(unit) > 3 else unit)
