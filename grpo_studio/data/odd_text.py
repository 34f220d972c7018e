"""What may be wrong with the text of a prompt, whatever it says. Pure; quick on text that is sound."""

from __future__ import annotations

import re

from grpo_studio.data.faults import Faults
from grpo_studio.shown import shown

_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_HALF = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile(f"[{_CONTROL}]")
_ODD = re.compile(f"[{_CONTROL}\ud800-\udfff\ufffd]")  # one scan of sound text instead of three
_TOOLS = re.compile(
    r"</?\|?(?:tool_calls?|tool_responses?|tool_results?|tool_use|function_calls?|function_results?)\|?[>\s]"
    r"|<\|python_tag\|>|\[/?(?:AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<\uff5ctool\u2581"
)
_MARKUP = re.compile(
    r"<\|(?:im_start|im_end|im_sep|endoftext|user|assistant|system|end|eot_id|eom_id|begin_of_text|end_of_text"
    r"|start_header_id|end_header_id|start_of_role|end_of_role)\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"
    r"|<\uff5c(?:User|Assistant|begin\u2581of\u2581sentence|end\u2581of\u2581sentence)\uff5c>"
)


def text_faults(text: str, faults: Faults) -> None:
    """Add what is odd about the characters of a text, and about marks in it that mean something to a chat template."""
    if _ODD.search(text):
        _odd_characters(text, faults)
    if "<" in text or "[" in text:
        _marks(text, faults)


def _odd_characters(text: str, faults: Faults) -> None:
    if half := _HALF.search(text):
        what = f"the prompt holds half a character ({shown(half[0])}), which no tokenizer takes"
        faults.add("half_character", what)
    if control := _CONTROLS.search(text):
        faults.add("control_characters", f"the prompt holds the control character {shown(control[0])}")
    if "\ufffd" in text:
        what = "the prompt holds \ufffd, the trace of text that was read in a wrong encoding"
        faults.add("broken_encoding", what)


def _marks(text: str, faults: Faults) -> None:
    if tools := _TOOLS.search(text):
        faults.add("tool_marks", f"the prompt holds {shown(tools[0])}, the mark of a tool call")
    if markup := _MARKUP.search(text):
        what = f"the prompt holds {shown(markup[0])}, which a chat template writes by itself"
        faults.add("chat_marks", what)
