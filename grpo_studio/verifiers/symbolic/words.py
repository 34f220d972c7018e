"""The words and signs of written mathematics: separators, units, functions, names of constants."""

# ruff: noqa: RUF001 - Greek letters look like Latin ones.
from __future__ import annotations

from typing import Final


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


SEPARATORS: Final = frozenset({"and", "or"})
FUNCTIONS: Final = word_set(
    "sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan arccot arcsec arccsc arsinh arcosh artanh"
    " asin acos atan ln log lg exp sqrt cbrt abs gcd lcm max min floor ceil binom Re Im arg sgn sign"
)
FUNCTION_ALIASES: Final = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "tg": "tan",
    "ctg": "cot",
    "cosec": "csc",
    "arctg": "arctan",
    "sign": "sgn",
    "ceiling": "ceil",
    "hcf": "gcd",
}
CONSTANTS: Final = {"pi": "pi", "infinity": "oo", "inf": "oo", "infty": "oo", "e": "e", "i": "i", "π": "pi", "∞": "oo"}
GREEK: Final = word_set(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi omicron rho varrho"
    " sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell"
    " hbar"
)
GREEK_LETTERS: Final = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi",
    "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Φ": "Phi",
    "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
NUMBER_WORDS: Final = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
SCALE_WORDS: Final = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 10**3,
    "myriad": 10**4,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "lakh": 10**5,
    "crore": 10**7,
}
_COUNTERS = word_set(
    "个 個 名 人 本 枚 匹 只 隻 件 条 條 张 張 位 次 回 册 冊 台 辆 輛 颗 棵 개 명 마리 권 번 대 장 살 가지 岁 歳 才"
)
CJK_SCALES: Final = {
    "百": "hundred", "千": "thousand", "万": "myriad", "萬": "myriad", "亿": "hundred million",
    "億": "hundred million", "백": "hundred", "천": "thousand", "만": "myriad", "억": "hundred million",
}  # fmt: skip
CJK_UNITS: Final = {
    **dict.fromkeys(_COUNTERS, "pieces"),
    **dict.fromkeys(("元", "块", "块钱", "人民币"), "yuan"),
    **dict.fromkeys(("円", "日元", "日圆", "엔"), "yen"),
    **dict.fromkeys(("원", "韩元"), "krw"),
    **dict.fromkeys(("美元", "美金", "ドル", "달러"), "dollar"),
    **dict.fromkeys(("欧元", "ユーロ", "유로"), "euro"),
    **dict.fromkeys(("米", "メートル", "미터"), "m"),
    **dict.fromkeys(("厘米", "公分", "センチ", "センチメートル", "센티미터"), "cm"),
    **dict.fromkeys(("毫米", "ミリ", "ミリメートル", "밀리미터"), "mm"),
    **dict.fromkeys(("千米", "公里", "キロメートル", "킬로미터"), "km"),
    **dict.fromkeys(("克", "グラム", "그램"), "g"),
    **dict.fromkeys(("千克", "公斤", "キログラム", "킬로그램"), "kg"),
    **dict.fromkeys(("小时", "小時", "時間", "个小时", "個小時", "시간"), "hour"),
    **dict.fromkeys(("分钟", "分鐘", "分間", "분"), "min"),
    **dict.fromkeys(("秒", "秒間", "초"), "sec"),
    **dict.fromkeys(("天", "日", "日間", "일"), "day"),
    **dict.fromkeys(("周", "週間", "주"), "week"),
    **dict.fromkeys(("个月", "個月", "か月", "ヶ月", "개월"), "month"),
    **dict.fromkeys(("年", "年間", "년"), "year"),
    **dict.fromkeys(("度",), "degrees"),
}
"""What stands after a number in Chinese, Japanese and Korean, as the English word that is read for it."""
PERCENT_WORDS: Final = frozenset({"percent", "percentage", "pct"})
DEGREE_WORDS: Final = frozenset({"degree", "degrees", "deg"})

_UNITS = {
    "mm": "millimeter millimetre", "cm": "centimeter centimetre", "m": "meter metre", "km": "kilometer kilometre",
    "in": "inch inches", "ft": "foot feet", "yd": "yard", "mi": "mile", "mg": "milligram", "g": "gram",
    "kg": "kilogram", "lb": "lbs pound", "oz": "ounce", "ml": "mL milliliter millilitre", "l": "L liter litre",
    "s": "sec second", "min": "minute mins", "h": "hr hrs hour", "day": "days", "week": "weeks", "month": "months",
    "year": "yr yrs", "dollar": "$ USD usd US$ bucks", "cent": "¢ cents", "euro": "€ EUR", "£": "GBP", "¥": "yen JPY",
    "yuan": "RMB CNY", "krw": "KRW",
    "₹": "INR rupee Rs", "rad": "radian", "unit": "units", "mph": "", "kph": "", "hz": "Hz hertz", "w": "W watt",
    "kw": "kW kilowatt", "j": "J joule", "n": "N newton", "v": "V volt", "pa": "Pa pascal", "mol": "mole moles",
    "k": "K kelvin", "am": "a.m", "pm": "p.m", "c": "celsius", "f": "fahrenheit",
}  # fmt: skip
UNITS: Final = {
    spelling: unit
    for unit, others in _UNITS.items()
    for name in (unit, *others.split())
    for spelling in {name, name + "s" if len(name) > 2 else name}
}
"""Spellings of the measuring units, to one name each; two different ones never match."""
UNIT_LETTERS: Final = frozenset("mgslLhKNJWVCF")
JOINING_WORDS: Final = frozenset({"per", "square", "sq", "cubic", "squared", "cubed"})
"""Parts of a unit: 'miles per hour', 'square cm'."""
CHANGING_WORDS: Final = word_set(
    "to of over by plus minus times more less least most than not no remainder mod modulo base half halves third thirds"
    " quarter quarters sixth sixths seventh sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths"
    " thousandth thousandths millionth millionths fourth fourths fifth fifths if for when where"
    " except either neither nor between with without"
    " approximately about exactly point squared cubed is are equals any all each but only until from into factorial"
    " divided multiplied pi root"
)
"""Words that make another statement of the number before them, so they are no label of it."""
EMPTY_PHRASES: Final = frozenset(
    {
        "no solution", "no solutions", "no real solution", "no real solutions", "empty set", "the empty set",
        "there is no solution", "there are no solutions",
    }
)  # fmt: skip
SYNONYMS: Final = {
    "dne": "does not exist",
    "doesn't exist": "does not exist",
    "does not exist": "does not exist",
    "undefined": "undefined",
    "not defined": "undefined",
}
EVERY_PHRASES: Final = frozenset(
    {"all real numbers", "all reals", "any real number", "every real number", "all real number", "the real numbers"}
)
