"""The demonstration and the command line."""

import struct

import numpy as np
import pytest
from typer.testing import CliRunner

import pegfan
from pegfan import demo
from pegfan.cli import app

runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "new" / "folder"


@pytest.fixture(scope="module")
def numbers(folder):
    return demo.run(folder)


def test_numbers(numbers):
    assert numbers["nodes"] == 1000
    assert 3000 < numbers["edges"] < 5000
    assert numbers["clusters"][0] == 1
    assert numbers["clusters"][-1] == 1000
    assert len(numbers["clusters"]) == 6
    assert numbers["framelets"] > 1000, "the binary Haar frame is redundant"
    assert numbers["frame_bounds"] == pytest.approx((1.0, 1.0), abs=1e-12)
    assert numbers["reconstruction_error"] < 1e-12


def test_energy_adds_up(numbers):
    assert len(numbers["energy"]) == len(numbers["clusters"])
    assert sum(numbers["energy"]) == pytest.approx(1.0, abs=1e-12)
    assert min(numbers["energy"]) >= 0


def test_denoising_helps(numbers):
    assert numbers["snr_denoised"] > numbers["snr_noisy"] + 4


def test_the_picture_is_a_png_of_a_sensible_size(numbers, folder):
    assert numbers["picture"] == folder / "framelets.png"
    content = numbers["picture"].read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert 1200 <= width <= 2400
    assert 800 <= height <= 1600
    assert [file.name for file in folder.iterdir()] == ["framelets.png"], "nothing else is left behind"


def test_the_graph_is_seeded_and_joins_close_nodes():
    first, again, other = (demo.random_geometric(200, 8, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert np.array_equal(first.positions, again.positions)
    assert not np.array_equal(first.positions, other.positions)
    radius = np.sqrt(8 / (np.pi * 200))
    distance = np.linalg.norm(first.positions[:, None] - first.positions[None], axis=2)
    assert np.array_equal(first.adjacency.toarray() > 0, (distance < radius) & ~np.eye(200, dtype=bool))


def test_signal_to_noise_ratio_by_hand():
    clean = np.array([3.0, 4.0])
    assert demo._decibels(clean, np.array([3.3, 4.4])) == pytest.approx(20.0)


# ------------------------------------------------------------------ command line


def test_cli_demo_prints_what_run_returns_and_overwrites(numbers, folder):
    numbers["picture"].write_bytes(b"old")
    result = runner.invoke(app, ["demo", "-o", str(folder)])
    assert result.exit_code == 0, result.output
    for text in (
        "1,000",
        f"{numbers['edges']:,}",
        f"{numbers['snr_noisy']:.1f} dB",
        f"{numbers['snr_denoised']:.1f} dB",
    ):
        assert text in result.stdout
    assert f"{numbers['energy'][1]:.1%}" in result.stdout, "the same seed, the same numbers"
    assert str(folder / "framelets.png") in result.stdout
    assert (folder / "framelets.png").read_bytes().startswith(b"\x89PNG")


def test_cli_bad_folder_is_one_sentence(tmp_path):
    file = tmp_path / "file"
    file.write_text("in the way")
    result = runner.invoke(app, ["demo", "-o", str(file)])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), "no traceback"
    assert f"Cannot write to {file}" in result.stderr
    assert "-o" in result.stderr
    assert result.stdout.strip() == ""
    assert file.read_text() == "in the way"


def test_cli_errors_are_red(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    (tmp_path / "file").touch()
    result = runner.invoke(app, ["demo", "-o", str(tmp_path / "file" / "below")], color=True)
    assert result.exit_code == 1
    assert "\x1b[31m" in result.stderr


def test_cli_version():
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"pegfan {pegfan.__version__}\n")


def test_cli_help_teaches():
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "pegfan demo -o demo" in result.stdout
    assert "demo" in runner.invoke(app, []).output, "no arguments show the help"
    described = runner.invoke(app, ["demo", "--help"])
    assert described.exit_code == 0
    assert "framelets.png" in described.stdout


def test_cli_rejects_a_negative_seed(tmp_path):
    result = runner.invoke(app, ["demo", "-o", str(tmp_path / "x"), "--seed", "-1"])
    assert result.exit_code == 2
    assert not (tmp_path / "x").exists()
