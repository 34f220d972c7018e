"""`report`: a tracker needs its package and its login, the Hub a token and a network that is not switched off."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.problem import Problem
from grpo_studio.report_checks import PACKAGES, report_problems

VARIABLES = (
    "WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "WANDB_MODE", "WANDB_BASE_URL", "NETRC",
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_OIDC_RESOURCE",
)  # fmt: skip


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without login: an empty home, no variables, and no package but those in the folder `packages`."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    for package in {name for names in PACKAGES.values() for name in names}:
        monkeypatch.delitem(sys.modules, package, raising=False)
    return tmp_path


@pytest.fixture
def packages(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = bare_machine / "packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    return folder


def install(packages: Path, name: str) -> None:
    (packages / name).mkdir()
    (packages / name / "__init__.py").touch()


def problems(**report: str) -> list[Problem]:
    return list(report_problems(RunConfig.model_validate({"report": report})))


def test_a_run_that_reports_nowhere_needs_nothing() -> None:
    assert problems() == []
    assert problems(to="none") == []


def test_every_tracker_of_the_setting_has_its_packages() -> None:
    from typing import get_args

    from grpo_studio.config import ReportSettings

    assert {"none", *PACKAGES} == set(get_args(ReportSettings.model_fields["to"].annotation))


@pytest.mark.parametrize("tracker", PACKAGES)
def test_a_tracker_whose_package_is_missing_says_how_to_install_it(tracker: str, packages: Path) -> None:
    (problem,) = problems(to=tracker)
    assert problem.field == "report.to"
    assert f"the package {tracker} is not installed" in problem.message
    assert f"pip install {tracker}" in problem.fix


@pytest.mark.parametrize(
    ("tracker", "package"), [("trackio", "trackio"), ("tensorboard", "tensorboard"), ("tensorboard", "tensorboardX")]
)
def test_a_tracker_without_accounts_needs_its_package_only(tracker: str, package: str, packages: Path) -> None:
    install(packages, package)
    assert problems(to=tracker) == []


def test_the_folder_that_wandb_leaves_behind_is_not_its_package(packages: Path) -> None:
    (packages / "wandb").mkdir()
    (problem,) = problems(to="wandb")
    assert "not installed" in problem.message


def test_wandb_without_a_login_says_what_would_work(packages: Path) -> None:
    install(packages, "wandb")
    (problem,) = problems(to="wandb")
    assert problem.field == "report.to"
    assert "api.wandb.ai" in problem.message
    for way in ("WANDB_API_KEY", "wandb login", "WANDB_MODE=offline"):
        assert way in problem.fix


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("WANDB_API_KEY", "key"),
        ("WANDB_IDENTITY_TOKEN_FILE", "token.jwt"),
        ("WANDB_MODE", "offline"),
        ("WANDB_MODE", "disabled"),
    ],
)
def test_wandb_is_content_with_a_key_or_without_a_network(
    variable: str, value: str, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(packages, "wandb")
    monkeypatch.setenv(variable, value)
    assert problems(to="wandb") == []


def test_wandb_online_still_needs_a_login(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(packages, "wandb")
    monkeypatch.setenv("WANDB_MODE", "online")
    assert len(problems(to="wandb")) == 1


@pytest.mark.parametrize("name", [".netrc", "_netrc", "elsewhere"])
def test_wandb_finds_a_login_in_a_netrc_file(
    name: str, packages: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(packages, "wandb")
    if name == "elsewhere":
        monkeypatch.setenv("NETRC", str(bare_machine / name))
    (bare_machine / name).write_text("machine api.wandb.ai\n  login user\n  password key\n")
    assert problems(to="wandb") == []
    monkeypatch.setenv("WANDB_BASE_URL", "https://wandb.example.org:8080")
    (problem,) = problems(to="wandb")
    assert "wandb.example.org:8080" in problem.message


@pytest.mark.parametrize(
    "text", ["machine example.org login a password b\n", "machine api.wandb.ai login\n", "machine"]
)
def test_a_netrc_file_without_the_login_does_not_help(text: str, packages: Path, bare_machine: Path) -> None:
    install(packages, "wandb")
    (bare_machine / ".netrc").write_text(text)
    assert len(problems(to="wandb")) == 1


def test_a_hub_repository_needs_a_token() -> None:
    (problem,) = problems(hub_repo="owner/name")
    assert problem.field == "report.hub_repo"
    assert "owner/name" in problem.message
    assert "HF_TOKEN" in problem.fix


def test_the_token_may_be_in_the_environment_or_in_the_file_of_a_login(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare_machine / "token").write_text("hf_file")
    assert problems(hub_repo="owner/name") == []
    (bare_machine / "token").unlink()
    monkeypatch.setenv("HF_TOKEN", "hf_environment")
    assert problems(hub_repo="owner/name") == []


def test_a_token_that_ci_was_to_give_and_does_not_is_a_problem_not_an_exception(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (
        "GITHUB_ACTIONS",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "GITLAB_CI",
        "HF_OIDC_ID_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_OIDC_RESOURCE", "owner/name")
    (problem,) = problems(hub_repo="owner/name")
    assert "HF_OIDC_ID_TOKEN" in problem.message


@pytest.mark.parametrize("switch", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_a_hub_repository_is_refused_when_the_hub_is_switched_off(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_environment")
    monkeypatch.setenv(switch, "1")
    (problem,) = problems(hub_repo="owner/name")
    assert f"{switch}=1" in problem.message
    assert f"unset {switch}" in problem.fix


def test_a_switch_that_is_set_to_off_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_environment")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")
    assert problems(hub_repo="owner/name") == []


def test_tracker_and_hub_are_judged_together(packages: Path) -> None:
    assert [problem.field for problem in problems(to="trackio", hub_repo="owner/name")] == [
        "report.to",
        "report.hub_repo",
    ]
