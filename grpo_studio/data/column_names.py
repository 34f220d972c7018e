"""Names by which people call the question and the gold answer, in the languages of many data sets. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final, Literal

Role = Literal["prompt", "answer"]
_LONGEST = 60

# By language: English first, then what the same columns are called elsewhere.
_QUESTION: Final = {
    "en": "prompt, question, problem, query, instruction, question text, problem statement, user prompt, input prompt",
    "de": "Frage, Aufgabe, Fragestellung, Aufgabenstellung, Anweisung",
    "fr": "question, problème, énoncé, consigne, instruction",
    "es": "pregunta, problema, enunciado, consigna, instrucción",
    "it": "domanda, problema, quesito, istruzione",
    "pt": "pergunta, questão, problema, enunciado, instrução",
    "nl": "vraag, opgave, vraagstuk, opdracht",
    "sv, da, no": "fråga, uppgift, spørgsmål, spørsmål, opgave, oppgave",
    "fi": "kysymys, tehtävä",
    "pl": "pytanie, zadanie, polecenie",
    "cs": "otázka, úloha, příklad",
    "hu": "kérdés, feladat",
    "ro": "întrebare, problemă",
    "tr": "soru",
    "el": "ερώτηση, πρόβλημα",
    "ru, uk": "вопрос, задача, задание, запрос, питання, запитання, завдання",
    "zh": "问题, 問題, 题目, 題目, 提示, 提问",
    "ja": "質問, 問題, 問い",
    "ko": "질문, 문제",
    "ar": "سؤال, السؤال, مسألة",
    "hi": "प्रश्न, सवाल",
    "vi": "câu hỏi, đề bài",
    "id": "pertanyaan, soal",
}
_GOLD: Final = {
    "en": "answer, solution, ground truth, gold, gold answer, golden answer, golden answers, final answer, "
    "expected answer, reference answer, correct answer, true answer, reference solution, gold solution, "
    "ground truth answer, gt answer, answer key, answers",
    "de": "Antwort, Lösung, Loesung, Musterlösung, Musterloesung, richtige Antwort",
    "fr": "réponse, solution, corrigé, bonne réponse",
    "es": "respuesta, solución, respuesta correcta",
    "it": "risposta, soluzione",
    "pt": "resposta, solução, gabarito",
    "nl": "antwoord, oplossing",
    "sv, da, no": "svar, lösning, løsning, facit, fasit",
    "fi": "vastaus, ratkaisu",
    "pl": "odpowiedź, rozwiązanie",
    "cs": "odpověď, řešení",
    "hu": "válasz, megoldás",
    "ro": "răspuns, soluție",
    "tr": "cevap, yanıt, çözüm",  # noqa: RUF001
    "el": "απάντηση, λύση",
    "ru, uk": "ответ, решение, відповідь, розв'язок",
    "zh": "答案, 回答, 解答",
    "ja": "答え, 解答, 回答, 正解",
    "ko": "답, 정답, 답변, 해답",
    "ar": "إجابة, الإجابة, جواب, الجواب",
    "hi": "उत्तर, जवाब",
    "vi": "câu trả lời, đáp án",
    "id": "jawaban",
}
# Each line of a role is one rank: a name of an earlier one wins over all of the later ones.
_RANKS: Final[dict[Role, tuple[Iterable[str], ...]]] = {
    "prompt": (
        _QUESTION.values(),
        ("messages, conversations, conversation, chat, dialog, dialogue",),  # often holds the answer as well
        ("input, text, Eingabe, texte, texto, entrada, entrée, текст, 文本, 输入, 入力, 입력",),
    ),
    "answer": (
        _GOLD.values(),
        (
            "target, label, output, response, reference, expected, expected output, result, gt, Ergebnis, résultat, "
            "resultado, risultato, результат, 结果",
        ),
        ("tests, test list, test cases, unit tests, input output",),
    ),
}
KNOWN_FIELDS: Final[dict[Role, frozenset[str]]] = {
    "prompt": frozenset(),
    "answer": frozenset({"reward_model.ground_truth"}),  # verl's form; its extra_info.answer is the worked solution
}


def standing(name: str, role: Role) -> int | None:
    """How well a name says that its column has this role: 0 best; None when it does not say so.

    Capitals, accents, white space, `_` and `-` make no difference.
    """
    return _TABLES[role].get(plain(name))


def plain(name: str) -> str:
    """Letters and digits of a name alone, small and without accents; empty for one that is no word."""
    if len(name) > _LONGEST:
        return ""
    decomposed = unicodedata.normalize("NFKD", name).casefold()
    return "".join(character for character in decomposed if character.isalnum())


def _table(role: Role) -> dict[str, int]:
    ranked = list(enumerate(_RANKS[role]))
    return {plain(word): rank for rank, lists in reversed(ranked) for words in lists for word in words.split(", ")}


_TABLES: Final[dict[Role, dict[str, int]]] = {"prompt": _table("prompt"), "answer": _table("answer")}
