"""What a GGUF file says about its model, read from its head alone: a second where a whole reading takes many.

The format: the word GGUF, version, counts, then key-value pairs, then name, shape, type and place of each tensor. The
file is a stranger's: every count is bounded by what the file can hold. No torch here.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from grpo_studio.errors import ModelError
from grpo_studio.naming import nearest_names

ARCHITECTURES = (
    "bloom", "deci", "falcon", "gemma2", "gemma3", "gemma4", "gpt2", "llama", "mamba", "minimax-m2", "nemotron",
    "phi3", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "stablelm", "starcoder2",
)  # fmt: skip
"""Text models whose weights and tokenizer transformers 5.17 turns back from GGUF, by the names that such files use."""
LONGEST_TEXT = 16 << 20
LONGEST_NAME = 200
MOST_ENTRIES = 20_000_000
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_ALIGNMENT = 32


@dataclass(frozen=True)
class GgufFacts:
    """The head of a GGUF file. `fields` holds its key-value pairs."""

    path: Path
    fields: Mapping[str, Any]
    parameters: int
    tensors: int
    types: frozenset[int]
    weights_end: int

    @property
    def architecture(self) -> str:
        return str(self.fields.get("general.architecture", ""))[:LONGEST_NAME]

    @property
    def name(self) -> str:
        return str(self.fields.get("general.name") or self.path.stem)[:LONGEST_NAME]

    @property
    def licence(self) -> str | None:
        value = self.fields.get("general.license")
        return value[:LONGEST_NAME] if isinstance(value, str) else None

    @property
    def context_length(self) -> int | None:
        value = self.fields.get(f"{self.architecture}.context_length")
        return value if isinstance(value, int) else None

    @property
    def chat_template(self) -> str | None:
        value = self.fields.get("tokenizer.chat_template")
        return value if isinstance(value, str) and value.strip() else None

    @property
    def tokens(self) -> list[str]:
        found = self.fields.get("tokenizer.ggml.tokens")
        return found if isinstance(found, list) else []

    def token(self, role: str) -> str | None:
        """The text of a token by its role (`eos`, `eot`, `bos`, `padding`, `unknown`); None when none is named."""
        place = self.fields.get(f"tokenizer.ggml.{role}_token_id")
        return self.tokens[place] if isinstance(place, int) and 0 <= place < len(self.tokens) else None

    @property
    def end_tokens(self) -> list[str]:
        """The tokens that end an answer: the end of text, and of a turn where that is another."""
        found = (self.token(role) for role in ("eos", "eot", "eom"))
        return list(dict.fromkeys(token for token in found if token is not None))


def read_gguf(path: Path) -> GgufFacts:
    """Read the head of a GGUF file, and judge whether a run can train the model in it.

    Raises:
        ModelError: it cannot be read, is none, is cut off, or holds a model that cannot be turned back.
    """
    try:
        stamp = path.stat()
        facts = _read(path, stamp.st_size, stamp.st_mtime_ns)
    except OSError as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"cannot read {path}: {error.strerror or error}; give a file that may be read") from error
    _require_usable(facts, stamp.st_size)
    return facts


@functools.lru_cache(maxsize=4)
def _read(path: Path, size: int, stamp: int) -> GgufFacts:
    with path.open("rb") as file:
        try:
            return _Head(path, file, size).facts()
        except (EOFError, struct.error) as error:
            raise _cut_off(path, size) from error
        except (UnicodeDecodeError, ValueError, OverflowError, RecursionError) as error:
            raise ModelError(f"{path.name} is a damaged GGUF file: {str(error)[:200]}; fetch it again") from error


def _cut_off(path: Path, size: int) -> ModelError:
    return ModelError(f"{path.name} is cut off: it ends after {size:,} bytes, before its model does; fetch it again")


class _Head:
    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self._path = path
        self._file = file
        self._size = size
        self._order = "<"

    def facts(self) -> GgufFacts:
        magic = self._file.read(4)
        if magic != b"GGUF":
            shown = magic.decode("ascii", "replace") if magic else "nothing"
            raise ModelError(
                f"{self._path.name} is no GGUF file: it begins with {shown!r}, not 'GGUF'; give a .gguf file"
            )
        version = self._number(4)
        if version & 0xFFFF == 0:  # written on a machine that counts bytes the other way
            self._order, version = ">", int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in (2, 3):
            raise ModelError(f"{self._path.name} is GGUF version {version}; give one of version 2 or 3")
        tensors, pairs = self._count(), self._count()
        fields = {}
        for _ in range(pairs):
            name = self._text()
            fields[name] = self._value(self._number(4))
        parameters, end, types = 0, 0, set()
        for _ in range(tensors):
            self._text()
            shape = [self._number(10) for _ in range(self._bounded(self._number(4), 8))]
            kind, offset = self._number(4), self._number(10)
            numbers = math.prod(shape)
            parameters, end = parameters + numbers, max(end, offset + _bytes_of(kind, numbers))
            types.add(kind)
        alignment = fields.get("general.alignment")
        step = alignment if isinstance(alignment, int) and alignment > 0 else _ALIGNMENT
        start = -(-self._file.tell() // step) * step
        return GgufFacts(self._path, fields, parameters, tensors, frozenset(types), start + end if tensors else 0)

    def _number(self, kind: int) -> Any:
        form = self._order + _NUMBERS[kind]
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _bytes(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def _count(self) -> int:
        return self._bounded(self._number(10), min(MOST_ENTRIES, self._size))

    def _bounded(self, count: int, most: int) -> int:
        if count > most:
            raise ValueError(f"it counts {count:,} entries")
        return count

    def _text(self) -> str:
        return self._bytes(self._bounded(self._number(10), min(LONGEST_TEXT, self._size))).decode("utf-8", "replace")

    def _value(self, kind: int, depth: int = 0) -> Any:
        if kind == _TEXT:
            return self._text()
        if kind in _NUMBERS:
            return self._number(kind)
        if kind != _ARRAY or depth > 4:
            raise ValueError(f"it has a value of the unknown kind {kind}")
        inner, count = self._number(4), self._count()
        if inner in _NUMBERS:
            form = f"{self._order}{count}{_NUMBERS[inner]}"
            return list(struct.unpack(form, self._bytes(struct.calcsize(form))))
        return [self._value(inner, depth + 1) for _ in range(count)]


def _bytes_of(kind: int, numbers: int) -> int:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError):
        return 0  # judged by its type
    return int(numbers // block * size)


def _require_usable(facts: GgufFacts, size: int) -> None:
    name = facts.path.name
    parts = facts.fields.get("split.count")
    if isinstance(parts, int) and parts > 1:
        raise ModelError(f"{name} is one of {parts} parts of a model; join them (llama-gguf-split --merge)")
    if facts.architecture not in ARCHITECTURES:
        raise ModelError(
            f"{name} holds a model of the architecture {facts.architecture[:60]!r}, which cannot be turned back into "
            f"weights to train; {nearest_names(facts.architecture[:60], ARCHITECTURES)}"
        )
    if not facts.tensors:
        raise ModelError(f"{name} holds no weights; give the GGUF file of a whole model")
    if not facts.tokens:
        raise ModelError(f"{name} holds no tokenizer; give a GGUF file that was made from a whole model folder")
    if unreadable := sorted(_type_name(kind) for kind in facts.types if not _is_readable(kind)):
        raise ModelError(
            f"{name} is quantised in a way that cannot be read ({', '.join(unreadable)}); use one in F16, BF16, Q8_0, "
            "Q4_K_M or another common form"
        )
    if facts.weights_end > size:
        raise _cut_off(facts.path, size)


def _type_name(kind: int) -> str:
    from gguf.constants import GGMLQuantizationType

    try:
        return str(GGMLQuantizationType(kind).name)
    except ValueError:
        return f"type {kind}"


@functools.lru_cache(maxsize=64)
def _is_readable(kind: int) -> bool:
    """Whether the library turns numbers of this type back: tried on one block."""
    import numpy
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    try:
        type_ = GGMLQuantizationType(kind)
        dequantize(numpy.zeros((1, GGML_QUANT_SIZES[type_][1]), dtype=numpy.uint8), type_)
    except (ValueError, KeyError, NotImplementedError):
        return False
    return True
