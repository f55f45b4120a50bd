"""The demonstration, in Python and on the command line."""

import functools
import json
import struct
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import pegfan
from pegfan import demo
from pegfan.cli import app
from pegfan.results import Result
from pegfan.running import Runner

runner = CliRunner()
SMALL = {"n": 300, "n_edges": 3000, "n_features": 20, "splits": 2, "epochs": 30}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "new" / "folder"


@pytest.fixture(scope="module")
def numbers(folder):
    return demo.run(folder)


@pytest.fixture(scope="module")
def found():
    told = []
    comparison = demo.compare(**SMALL, progress=told.append)
    return comparison, told


def size_of_png(content):
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


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


def test_denoising_helps(numbers):
    assert numbers["snr_denoised"] > numbers["snr_noisy"] + 4


def test_the_picture_is_a_png_of_a_sensible_size(numbers, folder):
    assert numbers["picture"] == folder / "framelets.png"
    width, height = size_of_png(numbers["picture"].read_bytes())
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


# ---------------------------------------------------------------- the comparison


def test_both_networks_choose_on_validation_alone_and_leave_x_out(found):
    comparison, _ = found
    assert [entry.name for entry in comparison.entries] == ["PEGFAN, type b", "FSGNN"]
    for entry in comparison.entries:
        assert "X" not in [channel.name for channel in entry.channels]
        tried = [(trained.recipe.settings.wd_fc1, trained.recipe.settings.lr_fc) for trained in entry.tried]
        assert sorted(tried) == sorted(tuple(setting.values()) for setting in demo.GRID)
        validation = [trained.run.val_metric for trained in entry.tried]
        assert validation == sorted(validation, reverse=True)
        assert entry.trained[0] is entry.tried[0], "the first split is not trained again"
        assert [run.split for run in entry.runs] == [0, 1]
        assert [run.seed for run in entry.runs] == [0, 1]


class Backwards(Runner):
    """Results may come in any order."""

    def map(self, *given, **options):
        return reversed(list(super().map(*given, **options)))


def test_it_is_seeded_and_tells_how_far_it_is(found, monkeypatch):
    comparison, told = found
    total = 2 * (len(demo.GRID) + 1) + 1
    assert [(step.done, step.planned) for step in told] == [(k + 1, total) for k in range(total)]
    monkeypatch.setattr(demo, "Runner", Backwards)
    again = demo.compare(**SMALL)
    assert [entry.test for entry in again.entries] == [entry.test for entry in comparison.entries]
    assert [entry.recipe for entry in again.entries] == [entry.recipe for entry in comparison.entries]


def test_the_network_is_rebuilt_with_its_own_settings():
    comparison = demo.compare(**SMALL | {"epochs": 3}, hidden=8, layers=3, hop_normalize=False)
    test = comparison.graph.splits[0].test
    right = comparison.probabilities().argmax(axis=1)[test] == comparison.graph.labels[test]
    assert right.mean() == pytest.approx(comparison.entries[0].test[0])


@pytest.mark.parametrize("wrong", [{"h": 8}, {"labels": True}, {"epoch": 3}])
def test_what_is_no_setting_is_refused(wrong):
    with pytest.raises(ValueError, match=f"unknown setting {next(iter(wrong))!r}"):
        demo.compare(**SMALL, **wrong)


def test_the_majority_by_hand(found):
    comparison, _ = found
    graph = comparison.graph
    for split, value in zip(graph.splits, comparison.majority, strict=True):
        classes, counts = np.unique(graph.labels[split.train], return_counts=True)
        assert value == np.mean(graph.labels[split.test] == classes[counts.argmax()])


def test_the_result_holds_what_was_run(found):
    comparison, _ = found
    probabilities = comparison.probabilities()
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(300), abs=1e-5)
    result = comparison.result(probabilities)
    assert Result.from_json(result.to_json()) == result
    best, graph = comparison.entries[0], comparison.graph
    test = graph.splits[0].test
    assert np.sum(result.confusion) == len(test)
    assert np.trace(result.confusion) / len(test) == pytest.approx(best.test[0]), "of the model that was tested"
    assert list(result.test.per_split) == best.test
    (chosen,) = [row for row in result.candidates if row.chosen]
    assert (chosen.name, chosen.val_metric) == (best.name, best.runs[0].val_metric)
    values = [row.val_metric for row in result.candidates]
    assert values == sorted(values, reverse=True)
    assert len(values) == 8
    assert sum(channel.weight for channel in result.attention[0].channels) == pytest.approx(1, abs=1e-5)
    assert {int(row.id) for row in result.unsure} <= set(test.tolist())
    assert np.array_equal(result.source.open()[0].features, graph.features), "the source is the graph itself"


def test_pictures_and_report_are_written(found, tmp_path):
    picture, page = found[0].save(tmp_path / "out")
    assert size_of_png(picture.read_bytes())[0] > 1200
    text = page.read_text()
    assert "PEGFAN against FSGNN" in text
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["accuracy.png", "report.html"]


# ------------------------------------------------------------------ command line


@pytest.mark.long
def test_cli_demo_prints_what_run_returns_and_overwrites(numbers, folder):
    numbers["picture"].write_bytes(b"old")
    result = runner.invoke(app, ["demo", "-o", str(folder), "--signal"])
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


@pytest.mark.long
def test_cli_demo_compares(found, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "compare", functools.partial(demo.compare, **SMALL))
    result = runner.invoke(app, ["demo", "-o", str(tmp_path), "--workers", "1", "--json"])
    assert result.exit_code == 0, result.output
    assert sorted(file.name for file in tmp_path.iterdir()) == ["accuracy.png", "framelets.png", "report.html"]
    told = json.loads(result.stdout)
    assert told["comparison"]["networks"]["FSGNN"]["test"]["per_split"] == found[0].entries[1].test
    assert told["comparison"]["features_only"]["per_split"] == found[0].features_only
    kept = Result.from_json(json.dumps(told["comparison"]["result"]))
    assert list(kept.test.per_split) == found[0].entries[0].test
    assert told["files"] == [str(tmp_path / name) for name in ("framelets.png", "accuracy.png", "report.html")]


@pytest.mark.long
def test_cli_demo_prints_the_comparison(found, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "compare", lambda *_, **__: found[0])
    result = runner.invoke(app, ["demo", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for entry in found[0].entries:
        assert f"{100 * np.mean(entry.test):.1f} ± {100 * np.std(entry.test):.1f}" in result.stdout
    assert "report.html" in result.stdout


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
    assert "--debug" in result.stdout
    assert "demo" in runner.invoke(app, []).output, "no arguments show the help"
    described = runner.invoke(app, ["demo", "--help"])
    assert described.exit_code == 0
    assert "framelets.png" in described.stdout


def test_cli_rejects_a_negative_seed(tmp_path):
    result = runner.invoke(app, ["demo", "-o", str(tmp_path / "x"), "--seed", "-1"])
    assert result.exit_code == 2
    assert not (tmp_path / "x").exists()


@pytest.mark.long
def test_the_demo_needs_no_torch(tmp_path):
    code = f"""
import sys
sys.modules["torch"] = None
from pegfan.cli import app
app(["demo", "--signal", "-o", {str(tmp_path / "signal")!r}])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "signal" / "framelets.png").is_file()
