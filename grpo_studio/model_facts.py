"""What can be known of a model before it is loaded, wherever it lies: a folder, a GGUF file, the Hub, built in."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grpo_studio import hub, hub_asking, model_files
from grpo_studio.catalog import BUILTIN_MODELS, ModelLocation, locate
from grpo_studio.config import ModelSettings
from grpo_studio.errors import ModelError
from grpo_studio.gguf_files import read_gguf
from grpo_studio.remembered import Remembered
from grpo_studio.settings import Settings

GOOD_FOR_SECONDS = 60.0
"""An answer of the Hub is good for so long: one form asks several times."""
SPECIAL_KINDS = (3, 4)
"""GGUF's numbers for tokens of control and those that were added."""


@dataclass(frozen=True)
class ModelFacts:
    """A value that is not known is None.

    Args:
        template: the model's own chat template; None when it has none.
        added_tokens: texts of its special and added tokens; empty when they are not known.
        pad_token: as its tokenizer names it; None when it names none.
        end_tokens: all that end a completion, the tokenizer's first.
        own_code: whether its config points to Python code that comes with it.
        notes: what a person should know of how these were found.
    """

    kind: str
    title: str
    source: str
    architecture: str | None = None
    model_type: str | None = None
    parameters: int | None = None
    vocabulary: int | None = None
    context_length: int | None = None
    template: str | None = None
    added_tokens: frozenset[str] = frozenset()
    bos_token: str | None = None
    pad_token: str | None = None
    end_tokens: tuple[str, ...] = ()
    has_tokenizer: bool = True
    own_code: bool = False
    gated: bool | None = None
    readable: bool = True
    licence: str | None = None
    download_bytes: int | None = 0
    template_known: bool = True
    notes: tuple[str, ...] = ()


_OF_HUB: Remembered[ModelFacts] = Remembered(16)


def facts_of(model: ModelSettings, settings: Settings) -> ModelFacts:
    """Find them; of a Hub model only small files are fetched.

    Raises:
        ModelError: there is no such model, it cannot be read, or the Hub cannot be asked.
    """
    location = locate(model.id, settings.cache)
    if location.kind == "hub":
        turn = int(time.monotonic() / GOOD_FOR_SECONDS)
        return _OF_HUB.get((location.id, model.revision, turn), lambda: _of_hub(location.id, model.revision))
    if location.kind == "local":
        assert location.path is not None, "a local model has a folder"
        return _of_folder("local", location.path.name, location.path)
    if location.kind == "gguf":
        return _of_gguf(location)
    return _of_builtin(location)


def _of_builtin(location: ModelLocation) -> ModelFacts:
    model = BUILTIN_MODELS[location.id]
    known = ModelFacts(
        "builtin",
        model.title,
        location.id,
        architecture=model.architecture,
        parameters=model.parameters,
        vocabulary=model.vocabulary,
        context_length=model.context_length,
        pad_token=model.pad_token,
        end_tokens=(model.eos_token,),
        licence=model.licence,
        download_bytes=0 if location.file else model.wheel_bytes,
        template_known=False,
    )
    if location.ready and location.path is not None:
        found = _of_folder("builtin", model.title, location.path)
        return replace(found, licence=model.licence, parameters=model.parameters)
    if location.file is None:
        return known
    gguf = _of_gguf(location)
    return replace(known, template=gguf.template, added_tokens=gguf.added_tokens, template_known=True)


def _of_gguf(location: ModelLocation) -> ModelFacts:
    assert location.file is not None, "a GGUF model has a file"
    head = read_gguf(location.file)
    kinds = head.fields.get("tokenizer.ggml.token_type")
    listed = zip(head.tokens, kinds if isinstance(kinds, list) else (), strict=False)
    special = frozenset(token for token, kind in listed if kind in SPECIAL_KINDS)
    return ModelFacts(
        "gguf",
        head.name,
        str(location.file),
        architecture=head.architecture,
        parameters=head.parameters,
        vocabulary=len(head.tokens),
        context_length=head.context_length,
        template=head.chat_template,
        added_tokens=special | set(head.end_tokens),
        bos_token=head.token("bos"),
        pad_token=head.token("padding"),
        end_tokens=tuple(head.end_tokens),
        licence=head.licence,
    )


def _of_folder(kind: str, title: str, folder: Path) -> ModelFacts:
    facts = _of_files(ModelFacts(kind, title, str(folder)), model_files.in_folder(folder))
    packed = model_files.read_json(model_files.in_folder(folder), "config.json").get("quantization_config")
    return replace(
        facts,
        parameters=None if packed else model_files.parameters(folder),
        licence=model_files.licence(model_files.in_folder(folder)),
    )


def _of_files(facts: ModelFacts, find: model_files.Find, names: Collection[str] | None = None) -> ModelFacts:
    """Add what config and tokenizer say. `names` are those of all its files, where they need not be looked for."""
    has = names.__contains__ if names is not None else lambda name: find(name) is not None
    config = model_files.read_json(find, "config.json")
    generation = model_files.read_json(find, "generation_config.json")
    tokenizer = model_files.read_json(find, "special_tokens_map.json") | model_files.read_json(
        find, "tokenizer_config.json"
    )
    model_type = config.get("model_type")
    added = model_files.added_tokens(find, tokenizer)
    return replace(
        facts,
        architecture=model_files.architecture(config),
        model_type=model_type if isinstance(model_type, str) else None,
        vocabulary=model_files.number_in(config, "vocab_size"),
        context_length=model_files.context_length(config),
        template=model_files.chat_template(find, tokenizer),
        added_tokens=frozenset(added.values()),
        bos_token=model_files.named_token(tokenizer, "bos_token"),
        pad_token=model_files.named_token(tokenizer, "pad_token"),
        end_tokens=_end_tokens(tokenizer, added, model_files.end_ids(generation, config)),
        has_tokenizer=any(map(has, model_files.TOKENIZER_FILES)),
        own_code="auto_map" in config,
    )


def _end_tokens(tokenizer: Mapping[str, Any], added: Mapping[int, str], ids: list[int]) -> tuple[str, ...]:
    own = model_files.named_token(tokenizer, "eos_token")
    found = [] if own is None else [own]
    return tuple(dict.fromkeys([*found, *(added.get(number, f"token {number}") for number in ids)]))


def _of_hub(repo_id: str, revision: str | None) -> ModelFacts:
    blank = ModelFacts("hub", repo_id, repo_id)
    try:
        repo = hub.repo_facts(repo_id, "model", revision)
    except ModelError as error:
        if hub.cached_file(repo_id, "config.json", revision) is None:
            raise
        said = str(error).rpartition("; ")[0]
        found = _of_files(blank, lambda name: hub.cached_file(repo_id, name, revision))
        return replace(found, notes=(f"read from this machine's copy: {said}",))
    known = replace(
        blank,
        gated=repo.gated,
        readable=repo.readable,
        licence=repo.licence,
        parameters=repo.parameters,
        download_bytes=_missing_bytes(repo, revision),
    )
    if not repo.readable:
        gate = f"{repo_id} is gated, and this machine may not read it; accept its terms on its page and set HF_TOKEN"
        return replace(known, template_known=False, notes=(gate,))
    return _of_files(known, lambda name: _fetched(repo, name, revision), repo.files)


def _fetched(repo: hub.RepoFacts, name: str, revision: str | None) -> Path | None:
    """A small file of a repository, fetched into the Hub's cache."""
    from huggingface_hub import hf_hub_download

    if repo.files.get(name, 0) > model_files.LARGEST_JSON or name not in repo.files:
        return None
    try:
        return Path(hf_hub_download(repo.id, name, revision=revision, etag_timeout=hub_asking.TIMEOUT_SECONDS))
    except Exception as error:  # the boundary to the Hub's libraries, which raise many kinds
        raise hub_asking.failure(error, repo.id, "model", revision) from error


def _missing_bytes(repo: hub.RepoFacts, revision: str | None) -> int | None:
    """Bytes that loading it would still fetch."""
    wanted = hub.model_downloads(repo.files)
    if wanted is None:
        return None
    return sum(repo.files[name] for name in wanted if hub.cached_file(repo.id, name, revision) is None)
