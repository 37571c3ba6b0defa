"""The lock: it has every pin, and `nblib audit` names what isn't as it is locked."""

import base64
import hashlib
from importlib.metadata import Distribution

import pytest

from nblib import paths
from nblib.workflow import cli, supply_chain
from nblib.workflow.supply_chain import EXEMPT, SupplyChainError


def test_the_lock_has_every_pin_with_its_version_except_torch():
    pinned = {name: version for name, version in supply_chain.pins().items() if not EXEMPT.fullmatch(name)}
    assert supply_chain.locked() == pinned
    assert "torch" in supply_chain.pins()


def test_the_licences_are_those_of_the_pins():
    table = (paths.PROJECT_ROOT / supply_chain.LICENCES).read_text(encoding="utf-8")
    for name, version in supply_chain.pins().items():
        assert f"| {name} | {version} | " in table, name


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project that has locked one package, and an environment in which it is installed."""
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    (tmp_path / "requirements.lock").write_text(f"# head\ntoy==1.0 --hash=sha256:{'0' * 64}\n")
    installed = [install(tmp_path, "toy", "1.0"), install(tmp_path, "torch", "2.13.0+cpu")]
    monkeypatch.setattr(supply_chain, "distributions", lambda: installed)
    return tmp_path, installed


def install(root, name, version):
    (root / f"{name}.py").write_text("x = 1\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).decode().rstrip("=")
    about = root / f"{name}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {name}\nVersion: {version}\nLicense: Ours\n")
    (about / "RECORD").write_text(f"{name}.py,sha256={digest},6\n{about.name}/RECORD,,\n")
    return Distribution.at(about)


def test_an_environment_as_locked_has_no_faults(project, capsys):
    cli.main(["audit"])
    assert capsys.readouterr().out == "All 1 packages are the locked ones, and all their files are as installed.\n"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda root, installed: installed.pop(0), "toy is not installed."),
        (lambda root, installed: installed.append(install(root, "extra", "2")), "extra is installed, and not locked."),
        (lambda root, installed: (root / "toy.py").write_text("x = 2\n"), "toy: toy.py is not as it was installed."),
        (lambda root, installed: (root / "toy.py").unlink(), "toy: toy.py is not as it was installed."),
        (lambda root, installed: installed.__setitem__(0, install(root, "toy", "1.1")),
         "toy is installed as 1.1, and locked as 1.0."),
    ],
)  # fmt: skip
def test_what_is_not_as_locked_is_named(project, change, fault, capsys):
    change(*project)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["audit"])
    said = capsys.readouterr()
    assert said.out == f"{fault}\n"
    assert "differs from requirements.lock in 1 places" in said.err


@pytest.mark.parametrize("content", ["toy>=1", "\x00", f"toy==1.0 --hash=md5:{'0' * 32}"])
def test_a_lock_that_is_none_is_one_sentence(project, content):
    (project[0] / "requirements.lock").write_text(content)
    with pytest.raises(SupplyChainError, match=r"git checkout requirements\.lock"):
        supply_chain.locked()


def test_a_licence_is_the_expression_the_classifier_or_the_text(project):
    _, installed = project
    assert supply_chain._licence(installed[0]) == "Ours"
