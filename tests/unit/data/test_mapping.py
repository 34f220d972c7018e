"""Which columns are taken for the question and the gold, and when a person is asked instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio import data
from grpo_studio.config import ColumnSettings, DatasetSettings
from grpo_studio.data.column_names import standing
from grpo_studio.data.mapping import ColumnMapping, map_columns
from grpo_studio.errors import ColumnError

CHAT = [{"role": "user", "content": "1 + 1"}]


def mapped(*rows: dict[str, Any], **columns: str | None) -> ColumnMapping:
    return map_columns(rows, ColumnSettings.model_validate(columns), "rows.jsonl")


def refused(*rows: dict[str, Any], **columns: str | None) -> ColumnError:
    with pytest.raises(ColumnError) as caught:
        mapped(*rows, **columns)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value.mapping, ColumnMapping)
    return caught.value


@pytest.mark.parametrize(
    ("row", "prompt", "answer"),
    [
        ({"prompt": "q", "answer": "1"}, "prompt", "answer"),
        ({"question": "q", "answer": "1"}, "question", "answer"),
        ({"problem": "q", "solution": "1", "level": 3}, "problem", "solution"),
        ({"query": "q", "response": "1", "type": "t"}, "query", "response"),
        ({"instruction": "q", "input": "", "output": "1"}, "instruction", "output"),
        ({"problem": "q", "solution": "1", "messages": CHAT}, "problem", "solution"),
        ({"Question": "q", "Ground Truth": "1"}, "Question", "Ground Truth"),
        ({" PROBLEM ": "q", "final-answer": "1"}, " PROBLEM ", "final-answer"),
        ({"userPrompt": "q", "groundTruth": "1"}, "userPrompt", "groundTruth"),
        ({"input": "q", "target": "1"}, "input", "target"),
        ({"text": "q", "label": 1}, "text", "label"),
        ({"text": "q", "code": "c", "test_list": ["assert 1"]}, "text", "test_list"),
        ({"question": "q", "solutions": "s", "input_output": "{}"}, "question", "input_output"),
        ({"conversations": CHAT, "id": 1}, "conversations", None),
        ({"prompt": "q", "completion": "c"}, "prompt", None),
        ({"Frage": "q", "Antwort": "1"}, "Frage", "Antwort"),
        ({"Aufgabe": "q", "Lösung": "1"}, "Aufgabe", "Lösung"),
        ({"AUFGABE": "q", "LOESUNG": "1"}, "AUFGABE", "LOESUNG"),
        ({"question": "q", "réponse": "1"}, "question", "réponse"),
        ({"question": "q", "re\u0301ponse": "1"}, "question", "re\u0301ponse"),
        ({"pregunta": "q", "respuesta": "1"}, "pregunta", "respuesta"),
        ({"вопрос": "q", "ответ": "1"}, "вопрос", "ответ"),
        ({"问题": "q", "答案": "1"}, "问题", "答案"),
        ({"질문": "q", "정답": "1"}, "질문", "정답"),
        ({"câu hỏi": "q", "đáp án": "1"}, "câu hỏi", "đáp án"),
        # A strong name wins over a weak one, wherever it stands.
        ({"text": "t", "input": "i", "problem": "q", "label": 0, "gold": "1"}, "problem", "gold"),
        # verl: its reward_model.ground_truth is the gold, extra_info.answer the worked solution
        (
            {
                "data_source": "gsm8k",
                "prompt": CHAT,
                "reward_model": {"style": "rule", "ground_truth": "72"},
                "extra_info": {"answer": "#### 72", "question": "q", "index": 0},
            },
            "prompt",
            "reward_model.ground_truth",
        ),
        ({"meta": {"question": "q", "answer": "1"}, "id": 1}, "meta.question", "meta.answer"),
        ({"question": "q", "answer": "1", "meta": {"answer": "2", "question": "r"}}, "question", "answer"),
        ({"data": {"task": {"prompt": "q"}}, "gold": "1"}, "data.task.prompt", "gold"),
        # a mapping is no gold when a field of it or another column can be
        ({"question": "q", "answer": {"answer": "1", "unit": "m"}}, "question", "answer.answer"),
        ({"question": "q", "answer": {"value": 1}, "solution": "1"}, "question", "solution"),
        # a column without any value is none while there is another
        ({"question": "q", "answer": None, "solution": "1"}, "question", "solution"),
        ({"question": "q", "answer": None}, "question", "answer"),
        # what a verifier of code takes as its tests
        ({"question": "q", "answer": {"inputs": ["1"], "outputs": ["2"]}}, "question", "answer"),
    ],
    ids=lambda value: ",".join(value)[:40] if isinstance(value, dict) else "",
)
def test_columns_are_known_by_name(row: dict[str, Any], prompt: str, answer: str | None) -> None:
    found = mapped(row, row)
    assert (found.prompt, found.answer) == (prompt, answer)


@pytest.mark.parametrize(
    ("row", "field", "named"),
    [
        ({"question": "q", "answer": "12", "solution": "6 + 6"}, "answer", ["answer (such as '12')", "solution (such as '6 + 6')"]),
        ({"question": "q", "answer": "12", "ground_truth": 13}, "answer", ["answer (such as '12')", "ground_truth (such as 13)"]),
        ({"question": "q", "Antwort": "12", "Lösung": "12"}, "answer", ["Antwort", "Lösung"]),
        ({"question": "q", "label": "12", "target": "12"}, "answer", ["label", "target"]),
        ({"question": "q", "a": {"gold": "1"}, "b": {"gold": "2"}}, "answer", ["a.gold", "b.gold"]),
        ({"prompt": "q", "question": "r", "answer": "1"}, "prompt", ["prompt (such as 'q')", "question (such as 'r')"]),
        ({"input": "q", "text": "r", "answer": "1"}, "prompt", ["input", "text"]),
        ({"messages": CHAT, "conversations": CHAT}, "prompt", ["messages", "conversations"]),
    ],
)  # fmt: skip
def test_two_that_fit_alike_are_asked_about(row: dict[str, Any], field: str, named: list[str]) -> None:
    error = refused(row)
    assert error.field == f"dataset.columns.{field}"
    assert all(name in str(error) for name in named)
    assert str(error).rpartition("; ")[2].startswith(f"set dataset.columns.{field} to the one that is")
    assert len(getattr(error.mapping, f"{field}_candidates")) == 2


def test_an_asked_question_is_answered_by_one_setting() -> None:
    row = {"question": "q", "answer": "12", "solution": "6 + 6"}
    for choice, answer in (("answer", "answer"), ("solution", "solution"), ("-", None)):
        assert mapped(row, answer=choice).answer == answer


def test_a_sample_that_is_asked_about_is_cut() -> None:
    message = str(refused({"question": "q", "answer": "x" * 5000, "solution": "a\n; b\x00"}))
    assert len(message) < 400
    assert "'a ;b\\x00'" in message


@pytest.mark.parametrize(
    ("columns", "field", "words"),
    [
        ({"prompt": "qestion"}, "prompt", "did you mean question? set dataset.columns.prompt to one of them"),
        ({"prompt": "QUESTION"}, "prompt", "did you mean question?"),
        ({"answer": "golds"}, "answer", "did you mean gold?"),
        ({"answer": "inner"}, "answer", "did you mean meta.inner?"),
        ({"answer": "meta.other"}, "answer", "has no column 'meta.other' for the answer"),
        ({"answer": "question.text"}, "answer", "has no column 'question.text'"),
        ({"prompt": "zzz"}, "prompt", "(columns found: question, gold, meta, meta.inner)"),
        ({"prompt": "meta"}, "prompt", "set dataset.columns.prompt to a field of it: meta.inner"),
        ({"answer": "meta"}, "answer", "set dataset.columns.answer to a field of it: meta.inner"),
        ({"prompt": "gold", "answer": "gold"}, "answer", "is set both for the prompt and for the gold answer"),
        ({"answer": "question", "prompt": "question"}, "answer", "is set both"),
    ],
)
def test_columns_that_are_set_but_cannot_be_used(columns: dict[str, str], field: str, words: str) -> None:
    error = refused({"question": "q", "gold": "1", "meta": {"inner": "x"}}, **columns)
    assert error.field == f"dataset.columns.{field}"
    assert words in str(error)


def test_a_column_that_is_set_leaves_its_other_role() -> None:
    row = {"question": "q", "problem": "p", "answer": "1", "solution": "2"}
    found = mapped(row, prompt="answer", answer=None)
    assert (found.prompt, found.answer) == ("answer", "solution")
    assert mapped({"question": "q", "problem": "p"}, answer="question").prompt == "problem"


def test_without_a_known_prompt_the_columns_are_listed() -> None:
    error = refused({"sentence": "q", "answer": "1"})
    assert error.field == "dataset.columns.prompt"
    assert "(columns found: sentence, answer); set dataset.columns.prompt to one of them" in str(error)
    assert isinstance(error.mapping, ColumnMapping)
    assert error.mapping.answer == "answer"


def test_fields_of_an_answer_are_proposed() -> None:
    error = refused({"question": "q", "answers": {"text": ["a"], "answer_start": [3]}})
    assert error.field == "dataset.columns.answer"
    assert str(error).endswith("; set dataset.columns.answer to a field of it: answers.text, answers.answer_start")


def test_columns_of_all_first_rows_count() -> None:
    rows: list[dict[str, Any]] = [{"question": "q"}] * 999 + [{"question": "q", "gold": "1"}]
    assert mapped(*rows).answer == "gold"
    assert mapped(*[{"question": "q"}] * 1000, {"gold": "1"}).columns == ("question",)


def test_chats_and_lists_have_no_fields() -> None:
    found = mapped({"prompt": CHAT, "answer": ["a", "b"], "choices": {"a": {"b": {"c": {"d": 1}}}}, "x.y": {"z": 1}})
    assert found.columns == ("prompt", "answer", "choices", "choices.a", "choices.a.b", "choices.a.b.c", "x.y")


def test_free_keys_do_not_flood_the_list() -> None:
    rows = [{"question": "q", "counts": {f"word{row}-{place}": 1 for place in range(50)}} for row in range(50)]
    assert len(mapped(*rows).columns) < 60
    assert mapped(*rows, answer="counts.word40-3").answer == "counts.word40-3"


@pytest.mark.parametrize(
    "name", ["answer\n; rm", "x" * 10_000, "\x1b[31mred", "<img src=x onerror=alert(1)>", "\ud83d", "a\u202eb"]
)
def test_hostile_names_make_no_long_or_odd_message(name: str) -> None:
    written = name.encode("utf-8", "replace").decode()  # settings hold no half of a character
    errors = (
        refused({name: "q", "n": 1}),
        refused({"question": "q", name: 1}, answer="none"),
        refused({"question": "q"}, answer=written),
    )
    for error in errors:
        assert len(str(error)) < 400
        assert str(error).isprintable()
        assert str(error).rpartition("; ")[2].startswith(("set dataset.columns", "did you mean"))


def test_hundreds_of_columns_are_listed_in_part() -> None:
    message = str(refused({f"column {number}": number for number in range(900)}, prompt="column 1000"))
    assert "and 880 more" in message
    assert len(message) < 600


ODD = "aé ;.'\n\x00\u202e\ud800\U0001f600<"
NAMES = st.sampled_from(["prompt", "Question", "text", "answer", "gold", "label", "completion"]) | st.text(
    ODD, max_size=6
)
VALUES = st.none() | st.text(ODD, max_size=5) | st.integers() | st.dictionaries(NAMES, st.integers(), max_size=2)


@hypothesis.settings(max_examples=60)
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_any_rows_are_mapped_or_asked_about(row: dict[str, Any]) -> None:
    columns = DatasetSettings().columns
    try:
        found: ColumnMapping | ColumnError = map_columns([row, row], columns, "rows.jsonl")
    except ColumnError as error:
        found = error
    if isinstance(found, ColumnError):
        assert str(found).isprintable()
        assert found.field in ("dataset.columns.prompt", "dataset.columns.answer")
    else:
        assert found.prompt in found.columns
        assert found.answer is None or found.answer in found.columns
        assert found.prompt != found.answer


@given(st.text("aAéß _-9問", max_size=30))
def test_case_and_separators_make_no_difference(name: str) -> None:
    for role in ("prompt", "answer"):
        assert standing(name, role) == standing(f" {name.replace(' ', '_')}-", role)
    assert standing("Gold_Answer", "answer") == standing("goldanswer", "answer") == 0


def test_gsm8k_is_mapped_without_typing(shared_dir: Path) -> None:
    splits = data.load(DatasetSettings(source=str(shared_dir / "data" / "gsm8k_train.jsonl")))
    assert (splits.mapping.prompt, splits.mapping.answer, splits.mapping.gold_form) == ("question", "answer", "gsm8k")
    assert (splits.rows_read, splits.dropped) == (7473, 0)
    assert splits.mapping.renamed == {}
