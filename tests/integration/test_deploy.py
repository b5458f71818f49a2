"""The container files: what they start exists with every option, and so does every setting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from fairlane import Settings
from fairlane.cli import cli
from fairlane.http.app import ROUTES
from fairlane.settings.settings import PREFIX

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
POD = DEPLOY / "kubernetes" / "fairlane.yaml"
IMAGE = DEPLOY / "Dockerfile"
#: Keys of a service by the Compose specification, those that we use.
KEYS = {
    "build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image", "init",
    "ports", "read_only", "restart", "security_opt", "stop_grace_period", "tmpfs", "volumes",
}  # fmt: skip


def compose() -> Any:
    return yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))


def objects() -> list[Any]:
    return list(yaml.safe_load_all(POD.read_text(encoding="utf-8")))


def containers() -> Iterator[Any]:
    for each in objects():
        if each["kind"] == "Deployment":
            yield from each["spec"]["template"]["spec"]["containers"]


def commands() -> Iterator[list[str]]:
    """Give the arguments of every `fairlane …` that a container runs."""
    for name, service in compose()["services"].items():
        if name != "store":
            yield service["command"]
    yield from (container["args"] for container in containers())
    (default,) = re.findall(r"^CMD (\[.*\])$", IMAGE.read_text(encoding="utf-8"), re.MULTILINE)
    yield yaml.safe_load(default)


@pytest.mark.parametrize("file", [COMPOSE, POD, IMAGE], ids=lambda file: file.name)
def test_what_was_not_run_says_so_in_its_first_line(file: Path) -> None:
    assert re.search(r"not (run|built) here", file.read_text("utf-8").splitlines()[0], re.I)


def test_compose_knows_every_key_and_every_name_is_that_of_something() -> None:
    file = compose()
    assert {key for key in file if not key.startswith("x-")} == {"name", "services", "volumes"}
    services = file["services"]
    for service in services.values():
        assert set(service) <= KEYS
        assert set(service.get("depends_on", ())) <= set(services)
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= set(file["volumes"])
        check = service.get("healthcheck", {})
        assert set(check) <= {"test", "interval", "timeout", "retries"}
    waited_for = {name for each in services.values() for name in each.get("depends_on", ())}
    assert all("healthcheck" in services[name] for name in waited_for)
    store_url = services["api"]["environment"]["FAIRLANE_STORE_URL"]
    assert store_url == "redis://store:6379/0"


def test_kubernetes_takes_every_object() -> None:
    for each in objects():
        kubernetes_validate.validate(each, "1.31", strict=True)


def test_every_command_is_there_with_its_options_and_values() -> None:
    found = list(commands())
    assert {command[0] for command in found} == {"api", "beat", "dispatcher", "worker"}
    for name, *options in found:
        with cli.commands[name].make_context(name, list(options)):
            pass


def test_every_setting_is_one_and_its_value_is_taken() -> None:
    names = {PREFIX + item.name.upper() for item in fields(Settings)}
    for file in (COMPOSE, POD, IMAGE):
        named = set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", file.read_text(encoding="utf-8")))
        assert named
        assert named <= names
    environment = compose()["x-fairlane"]["environment"]
    secret = {f"{PREFIX}TOKEN_SECRET": "s" * 64}
    Settings.from_env({**environment, **secret})
    (config,) = (each["data"] for each in objects() if each["kind"] == "ConfigMap")
    Settings.from_env({**config, **secret})


def test_probes_ask_what_needs_no_token() -> None:
    paths = {route.path for route in ROUTES}
    for container in containers():
        for name in ("livenessProbe", "readinessProbe", "startupProbe"):
            probe = container.get(name)
            if container["name"] == "api":
                assert probe["httpGet"]["path"] == "/livez"
                assert probe["httpGet"]["path"] in paths
    assert "/livez" in str(compose()["services"]["api"]["healthcheck"])


def test_a_worker_has_longer_than_its_longest_task() -> None:
    longest_s = max(kind.hard_limit_ms for kind in Settings().task_types) / 1000
    for service in compose()["services"].values():
        if "--queues" in service["command"] and "solo" not in service["command"]:
            assert int(service["stop_grace_period"].removesuffix("s")) > longest_s
    for each in objects():
        if each["kind"] == "Deployment" and each["metadata"]["labels"]["part"] == "text":
            assert each["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > longest_s


def test_the_image_is_made_of_what_is_there_and_is_nobodys_root() -> None:
    text = IMAGE.read_text(encoding="utf-8")
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists()
            assert f"!{source}" in kept.splitlines()
    assert len(re.findall(r"^FROM ", text, re.MULTILINE)) == 2
    assert re.search(r"^USER 10001$", text, re.MULTILINE)
    for container in containers():
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
    for name, service in compose()["services"].items():
        if name != "store":
            assert service["cap_drop"] == ["ALL"]


def test_only_this_machine_reaches_a_published_port() -> None:
    for service in compose()["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
