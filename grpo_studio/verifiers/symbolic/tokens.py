"""Cuts LaTeX or typed mathematics into tokens. Raises UnreadableError at the first thing that it does not know."""

# ruff: noqa: RUF001 - the signs of mathematics look like letters.
from __future__ import annotations

import re
from dataclasses import dataclass

from grpo_studio.verifiers.symbolic import words
from grpo_studio.verifiers.symbolic.tree import UnreadableError

MOST_DIGITS = 1000
_MOST_TOKENS = 1200


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: num, sym, const, func, word, currency, cmd (needs the parser's care) or op.

    `spaced`: white space came before. A `word` is text: of `\\text{...}`, or typed letters that are no product.
    """

    kind: str
    text: str
    spaced: bool = False


_DROPPED = words.word_set(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr displaystyle textstyle limits nolimits"
    " quad qquad , ; : ! space hspace angle triangle scriptstyle tiny small normalsize large hfill rm it bf sf tt"
    " em bfseries"
) | {" ", "\n"}
_OPERATORS = {
    "cdot": "*", "times": "*", "ast": "*", "div": "/", "pm": "±", "mp": "∓", "le": "≤", "leq": "≤", "leqslant": "≤",
    "ge": "≥", "geq": "≥", "geqslant": "≥", "lt": "<", "gt": ">", "ne": "≠", "neq": "≠", "approx": "≈", "in": "∈",
    "cup": "cup", "cap": "cap", "setminus": "without",
    "backslash": "without", "{": "⦃", "}": "⦄", "lbrace": "⦃", "rbrace": "⦄",
    "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "%": "%",
    "vert": "|", "lvert": "|", "rvert": "|", "mid": "mid", "degree": "°", "land": "and", "wedge": "and", "lor": ",",
    "vee": ",", "\\": "⏎", "&": "&", "_": "_", "#": "#", "bmod": "mod", "mod": "mod", "colon": ":", "lbrack": "[",
    "rbrack": "]", "circ": "°", "prime": "'", "simeq": "≈", "slash": "/",
}  # fmt: skip
_CHARACTERS = {
    "×": "*", "·": "*", "⋅": "*", "∙": "*", "•": "*", "÷": "/", "∗": "*", "≦": "≤", "≧": "≥", "⩽": "≤", "⩾": "≥",
    "∪": "cup", "∩": "cap", "∖": "without", "\\": "without", "∣": "mid", "、": ",", "〈": "⟨", "〉": "⟩",
    "′": "'", "∨": ",", "∧": "and",
}  # fmt: skip
_PLAIN_OPERATORS = frozenset({"cup", "cap", "without", "mid", "and"}) | frozenset(
    "+-*/^_!%°=<>≤≥≠≈∈±∓,;:|()[]{}⦃⦄⟨⟩⌊⌋⌈⌉&⏎√'"
)
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "£", "¥": "¥", "₹": "₹", "pounds": "£", "euro": "euro", "yen": "¥"}
_CONSTANTS = {"pi": "pi", "infty": "oo", "emptyset": "empty", "varnothing": "empty", "imath": "i", "exp": "exp"}
_SETS = {"R": "reals", "Z": "integers", "N": "naturals", "Q": "rationals", "C": "complexes"}
_PARSED = frozenset({"frac", "sqrt", "binom", "sum", "prod", "begin", "end", "overline", "operatorname"})
_ALIASES = {"dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "dbinom": "binom", "tbinom": "binom", "bar": "overline"}
_TEXT = words.word_set("text mathrm textbf textit textrm mbox texttt textsf mathit mathsf operatorname hbox textnormal")
_MARKED = frozenset({"vec", "hat", "mathbf", "boldsymbol", "bm", "mathcal", "overrightarrow", "tilde"})

_THOUSANDS = re.compile(r"[(\[⟨]|\\\{|[)\]⟩]|\\\}|(?<![\d.,])(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(?!,?\d)")
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,])(?<![\d.,] )[1-9]\d{0,2}(?:[ _]\d{3})+(?! ?[/\d])")
_COMPOUND = re.compile(  # 'twenty-five'
    r"(?i)\b(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-|\s)(one|two|three|four|five|six|seven|eight|nine)\b"
)
_TOKEN = re.compile(
    r"""(?P<space>\s+|~)
      | (?P<rep>\d*\.\d*\s*\\(?:overline|dot|bar)\s*(?:\{\d+\}|\d))
      | (?P<num>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,6}(?![A-Za-z\d]))?)
      | (?P<cmd>\\(?:[A-Za-z]+|.))
      | (?P<letters>[A-Za-z]+)
      | (?P<cjk>[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]+)
      | (?P<op>\*\*|<=|>=|!=|==|:=|->|.)""",
    re.VERBOSE | re.DOTALL,
)
_TYPED = {"**": "^", "<=": "≤", ">=": "≥", "!=": "≠", "==": "=", ":=": "="}
_ARGUMENT = re.compile(r"\s*\{([^{}]*)\}|\s*\\?([A-Za-z0-9]+)")


def tokens_of(text: str) -> list[Token]:
    """The tokens of a cleaned answer. Raises UnreadableError."""
    text = _COMPOUND.sub(lambda m: str(words.NUMBER_WORDS[m[1].lower()] + words.NUMBER_WORDS[m[2].lower()]), text)
    scanner = _Scanner(_SPACED_THOUSANDS.sub(lambda m: re.sub("[ _]", "", m[0]), _join_thousands(text)))
    return scanner.run()


def _join_thousands(text: str) -> str:
    """`1,250` is one number, but in brackets only when it can be no pair: `(1,250)` against `(1,000)`."""
    if "," not in text:
        return text
    pieces, last, opened = [], 0, []
    for match in _THOUSANDS.finditer(text):
        found = match[0]
        if found[0] in "([⟨" or found == "\\{":
            opened.append(match.end())
        elif found[0] in ")]⟩" or found == "\\}":
            del opened[-1:]
        elif not opened or ",0" in found or ", " in _bracketed(text, opened[-1]):
            pieces += [text[last : match.start()], found.replace(",", "")]
            last = match.end()
    return "".join([*pieces, text[last:]])


def _bracketed(text: str, start: int) -> str:
    end = re.compile(r"[)\]⟩]|\\\}").search(text, start)
    return text[start : end.start() if end else len(text)][:200]


class _Scanner:
    def __init__(self, text: str, *, quoted: bool = False) -> None:
        self.text = text
        self.quoted = quoted
        self.at = 0
        self.tokens: list[Token] = []
        self.spaced = False

    def run(self) -> list[Token]:
        while self.at < len(self.text):
            match = _TOKEN.match(self.text, self.at)
            if match is None or len(self.tokens) > _MOST_TOKENS:
                raise UnreadableError("too long to be one answer")
            self.at = match.end()
            kind = str(match.lastgroup)
            if kind == "space":
                self.spaced = True
                continue
            getattr(self, f"_{kind}")(match[0])
        return self.tokens

    def _add(self, kind: str, text: str) -> None:
        self.tokens.append(Token(kind, text, self.spaced))
        self.spaced = False

    def _num(self, text: str) -> None:
        if len(text) > MOST_DIGITS:
            raise UnreadableError(f"a number of more than {MOST_DIGITS} digits")
        self._add("num", text)

    _rep = _num

    def _op(self, text: str) -> None:
        text = _TYPED.get(text, _CHARACTERS.get(text, text))
        if text in _CURRENCIES:
            self._add("currency", _CURRENCIES[text])
        elif text in words.CONSTANTS:
            self._add("const", words.CONSTANTS[text])
        elif text in words.GREEK_LETTERS:
            self._add("sym", words.GREEK_LETTERS[text])
        elif text == "∅":
            self._add("const", "empty")
        elif text == "√":
            self._add("cmd", "sqrt")
        elif text in _PLAIN_OPERATORS:
            self._add("op", text)
        elif text.strip():
            raise UnreadableError(f"the character {text!a}")

    def _letters(self, run: str) -> None:
        """A typed run of letters: a word, or the product of its letters."""
        name = words.FUNCTION_ALIASES.get(run, run)
        lowered = run.lower()
        if lowered in words.SEPARATORS:
            self._add("op", "and" if lowered == "and" else ",")
        elif name in words.FUNCTIONS:
            self._add("func", name)
        elif lowered in words.CONSTANTS and (len(run) > 1 or run.islower()):
            self._add("const", words.CONSTANTS[lowered])
        elif self.quoted or (len(run) > 1 and self._is_word(run)):
            self._add("word", run)
        elif run in words.GREEK:
            self._add("sym", run)
        else:
            for letter in run:
                self._add("const" if letter in "ei" else "sym", letter)

    def _cjk(self, run: str) -> None:
        """A unit, a counter or a power of ten after a number: '9元', '3万人'."""
        scale = words.CJK_SCALES.get(run[0], "") if run not in words.CJK_UNITS else ""
        rest = run[1:] if scale else run
        if rest and rest not in words.CJK_UNITS:
            raise UnreadableError(f"the word {run!a:.30}")
        for word in f"{scale} {words.CJK_UNITS.get(rest, '')}".split():
            self._add("word", word)

    def _is_word(self, run: str) -> bool:
        after_number = self.spaced and bool(self.tokens) and self.tokens[-1].kind == "num" and "\\" not in self.text
        return len(run) > 3 or run in words.UNITS or (run.lower() in _SHORT_WORDS and not run.isupper()) or after_number

    def _cmd(self, text: str) -> None:
        name = _ALIASES.get(text[1:], text[1:])
        if name in _DROPPED:
            if name in ("left", "right") and self.text[self.at : self.at + 1] == ".":
                self.at += 1
            self.spaced = True
        elif name == "exp" or words.FUNCTION_ALIASES.get(name, name) in words.FUNCTIONS - {"sqrt", "binom"}:
            self._add("func", words.FUNCTION_ALIASES.get(name, name))
        elif name in _CURRENCIES:
            self._add("currency", _CURRENCIES[name])
        elif name in _OPERATORS:
            self._add("op", _OPERATORS[name])
        elif name in _CONSTANTS:
            self._add("const", _CONSTANTS[name])
        elif name in words.GREEK:
            self._add("sym", name)
        elif name in _TEXT:
            self._quoted(self._argument())
        elif name == "mathbb":
            self._add("const", _SETS.get(self._argument().strip(), "unknown"))
        elif name in _MARKED:
            self._add("sym", "vector " + self._argument().strip())
        elif name in _PARSED:
            self._add("cmd", name)
        else:
            raise UnreadableError(f"the command {text:.30}")

    def _argument(self) -> str:
        match = _ARGUMENT.match(self.text, self.at)
        if match is None:
            raise UnreadableError("nested text")
        self.at = match.end()
        return str(match[1] if match[1] is not None else match[2])

    def _quoted(self, content: str) -> None:
        """What stands in `\\text{...}`: each run of letters is a word, and all else is as outside."""
        self.tokens += _Scanner(content, quoted=True).run()
        self.spaced = True


_SHORT_WORDS = frozenset({"if", "is", "no", "yes", "not", "the", "per", "one", "two", "six", "ten", "for", "to", "of"})
