"""Training that repeats, evaluation that measures what it says, and a study that can be killed."""

import dataclasses
import io
import itertools
import json
import math
import signal
import subprocess
import sys
import time

import pytest
import torch

from posenc.lab import corpus, evaluation, experiments, study, training
from posenc.lab.experiments import SHIFT, TEXT, run
from posenc.lab.plans import PLANS, Part, runs
from posenc.lab.plugs import ENCODINGS
from posenc.lab.study import StudyError
from posenc.lab.tasks import UNSCORED, say_previous
from posenc.lab.transformer import Decoder

SMALL = dataclasses.replace(SHIFT, steps=12, batch=4, texts=8, dim=16, n_heads=2, lengths=(8, 16))
LINES = dataclasses.replace(TEXT, steps=5, batch=2, texts=4, dim=16, n_heads=2, lengths=(32, 64))
PLAN = (
    Part("shift", SMALL, ("none", "rope", "alibi"), (0, 1)),
    Part("inside", LINES, ("rope",), (0,), probed=True),
)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


# --- training ---------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_training_repeats_to_the_bit_whatever_the_threads(threads):
    """Catches a sum whose order depends on the machine's cores, and a lost setting."""
    before = torch.get_num_threads()
    first = run(SMALL, "rope", 0)
    try:
        torch.set_num_threads(threads)
        again = run(SMALL, "rope", 0)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(weights(first.model), weights(again.model))
    assert (first.losses, first.scores, first.geared) == (again.losses, again.scores, again.geared)


def test_another_seed_is_another_model_and_no_global_draw_matters():
    """Catches a seed that is not used, and one that everything shares."""
    state = torch.get_rng_state()
    one = run(SMALL, "none", 0)
    assert torch.equal(state, torch.get_rng_state())
    assert one.losses != run(SMALL, "none", 1).losses
    torch.manual_seed(77)
    assert one.losses == run(SMALL, "none", 0).losses


def test_training_lowers_the_loss():
    """Catches a gradient that is dropped, or climbs."""
    losses = run(dataclasses.replace(SMALL, steps=120, batch=16, dim=32), "learned", 0).losses
    assert losses[0] > math.log(16)
    assert sum(losses[-10:]) / 10 < math.log(4)


def test_the_learning_rate_rises_and_falls():
    """Catches a schedule that ends at zero, or starts there."""
    rates = [training.schedule(step, 200) for step in range(200)]
    assert rates[0] == 1 / 20
    assert max(rates) == rates[19] == rates[20] == 1
    assert all(a > b for a, b in itertools.pairwise(rates[20:]))
    assert 0.05 < rates[-1] < 0.051


def test_a_cap_on_time_ends_a_training_between_steps():
    """Catches a cap that is ignored."""
    assert len(run(SMALL, "none", 0, seconds=0.0).losses) == 1  # of none, the mean would be NaN
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        run(dataclasses.replace(SMALL, steps=0), "none", 0)
    for seconds in (-1.0, math.nan):
        with pytest.raises(ValueError, match=f"seconds must be at least 0, got {seconds}"):
            run(SMALL, "none", 0, seconds=seconds)


def test_a_task_or_a_seed_of_another_kind_is_refused():
    """Catches a model of characters that is trained because a task was misspelt."""
    with pytest.raises(ValueError, match="task must be 'shift' or 'text', got 'Shift'"):
        run(dataclasses.replace(SMALL, task="Shift"), "none", 0)
    draw = lambda generator: say_previous(2, 8, generator)  # noqa: E731
    with pytest.raises(TypeError, match="seed must be an integer, got str"):
        training.train(Decoder(16, "none"), draw, steps=1, seed="0")


@pytest.mark.parametrize("prefill", [0, 8])
def test_a_prompt_leaves_something_to_decode(prefill):
    """Catches an error from the inside of a concatenation of nothing."""
    x = torch.zeros(1, 8, dtype=torch.int64)
    with pytest.raises(ValueError, match=rf"prefill must lie in 1 ... 7, got {prefill}"):
        evaluation.decoded(Decoder(16, "none"), x, prefill)


def test_nothing_is_shown_where_nobody_watches(capsys):
    """Catches a progress bar in a stored output."""
    run(SMALL, "none", 0)
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_shown_where_somebody_watches(monkeypatch):
    """Catches a training by hand that leaves its watcher in the dark, and one that loses steps."""
    stderr = io.StringIO()
    stderr.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stderr)
    assert list(training.progress([1, 2, 3], "text, rope")) == [1, 2, 3]
    assert "text, rope" in stderr.getvalue()


# --- evaluation -------------------------------------------------------------------------------


class Echo(torch.nn.Module):
    """Says the previous token if it is among the last `reach` positions, else symbol 0."""

    def __init__(self, reach=10**9):
        super().__init__()
        self.reach, self.weight = reach, torch.nn.Parameter(torch.zeros(1))

    def forward(self, tokens, offset=0):
        before = torch.roll(tokens, 1, 1)
        before[:, min(self.reach, tokens.shape[1]) :] = 0
        return torch.nn.functional.one_hot(before, 29).float() * 9


def test_accuracy_counts_scored_places_from_the_first_on():
    """Catches a mean over places without an answer, and a first place that is not heeded."""
    x, y = say_previous(40, 16, torch.Generator().manual_seed(0))
    x, y = x.clamp(min=1), y.where(y == UNSCORED, y.clamp(min=1))
    assert evaluation.accuracy(Echo(), x, y) == 1
    assert evaluation.accuracy(Echo(8), x, y, first=8) == 0
    assert evaluation.accuracy(Echo(8), x, y) == pytest.approx(7 / 15)


def test_every_length_is_scored_on_the_same_targets():
    """Catches a loss that compares different pieces of the text."""
    seen = []

    class Watched(Echo):
        def forward(self, tokens, offset=0):
            seen.append(tokens)
            return torch.zeros(*tokens.shape, 29)

    x, y = corpus.load().windows(3, 64)
    losses = evaluation.loss_with_context(Watched(), x, y, (32, 48, 64), scored=32)
    assert [part.shape[1] for part in seen] == [32, 48, 64]
    assert all(torch.equal(part[:, -32:], x[:, -32:]) for part in seen)
    assert list(losses.values()) == pytest.approx([math.log(29)] * 3, rel=1e-6)
    with pytest.raises(ValueError, match=r"lengths must lie in 32 ... 64, got 16"):
        evaluation.loss_with_context(Watched(), x, y, (16,))


def test_long_texts_go_through_in_parts_and_come_out_whole():
    """Catches rows lost or reordered between calls."""
    model = Decoder(29, "rope", dim=16, n_heads=2, rows=512)
    x, _ = corpus.load().windows(40, 300)
    assert len(x) * 300 > evaluation.CHUNK
    with torch.no_grad():
        assert torch.allclose(evaluation.logits(model, x), model(x), atol=1e-5)


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rope", "alibi", "none", "index"])
def test_decoding_with_the_right_offset_is_reading_at_once(name):
    """Catches a decoder that would blame an encoding for its own fault."""
    model = Decoder(16, name, dim=16, n_heads=2, rows=32)
    x, _ = say_previous(4, 12, torch.Generator().manual_seed(0))
    whole = evaluation.logits(model, x)[:, 5:]
    assert torch.allclose(evaluation.decoded(model, x, 5), whole, atol=1e-5)
    for offsets in ("zero", "restart"):
        gap = (evaluation.decoded(model, x, 5, offsets=offsets) - whole).abs().max()
        assert (gap < 1e-5) == (name in ("alibi", "none"))
    with pytest.raises(ValueError, match="offsets must be 'right' or 'zero' or 'restart'"):
        evaluation.decoded(model, x, 5, offsets="left")


def test_probes_know_all_and_nothing():
    """Catches a probe that is fitted to what it is tested on, and a share that is not one."""
    drawn = torch.Generator().manual_seed(0)
    noise = torch.randn(64, 32, 8, generator=drawn, dtype=torch.float64)
    place = torch.arange(32.0, dtype=torch.float64)[:, None]
    ramp = noise + place * torch.ones(8, dtype=torch.float64)
    assert evaluation.position_r2(ramp, ridge=1e-6) > 0.99
    assert evaluation.position_r2(noise) < 0.02
    assert evaluation.position_r2(noise[:2], ridge=1e-6) < 0.02
    assert evaluation.position_share(ramp) > 0.9
    assert evaluation.position_share(noise) < 0.04
    assert evaluation.position_share(torch.ones(4, 32, 8) * place) == pytest.approx(1)


def test_the_share_of_the_offset_is_high_for_a_bias_and_small_for_content():
    """Catches rows that are not centred over the keys they see, and later keys that count."""
    p = torch.arange(48.0, dtype=torch.float64)
    wave = torch.cos(2.1 * (p[:, None] - p)).expand(6, 2, 48, 48)
    assert evaluation.offset_share(wave) > 0.95
    drawn = torch.Generator().manual_seed(1)
    spoilt = wave + 5 * torch.randn(6, 2, 48, 1, generator=drawn, dtype=torch.float64)
    spoilt[..., p > p[:, None]] = 1e6
    assert evaluation.offset_share(spoilt) == pytest.approx(evaluation.offset_share(wave))
    noise = torch.randn(200, 2, 24, 24, generator=drawn, dtype=torch.float64)
    assert evaluation.offset_share(noise) < 0.02
    half = evaluation.offset_share(wave + torch.randn(6, 2, 48, 48, generator=drawn) * 0.5**0.5)
    assert 0.4 < half < 0.6


# --- the study --------------------------------------------------------------------------------


def test_a_study_that_is_killed_ends_with_the_same_numbers(tmp_path):
    """Catches a run that continues a half-trained model, one that is lost, and one done twice."""
    script = (
        "import sys; sys.path.insert(0, 'tests'); import test_lab_study as t; from pathlib import "
        "Path\nt.study.study(t.PLAN, Path(sys.argv[1]), say=lambda w: print(w, flush=True))"
    )
    killed = tmp_path / "killed.json"
    command = [sys.executable, "-c", script, str(killed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("1 of 7: shift/none/0")
        assert process.stdout.readline().startswith("2 of 7: shift/rope/0")
        process.send_signal(signal.SIGKILL)
    assert not killed.exists()
    had = set(json.loads((tmp_path / "killed.json.partial").read_text())["runs"])
    assert {"shift/none/0", "shift/rope/0"} <= had
    told = []
    resumed = study.study(PLAN, killed, say=told.append)
    assert len(told) == 7 - len(had)
    whole = study.study(PLAN, tmp_path / "whole.json")
    assert resumed["runs"] == whole["runs"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["killed.json", "whole.json"]
    assert json.loads(killed.read_text()) == resumed


def test_what_is_stored_can_be_read_later(tmp_path):
    """Catches a lost seed, version, date or curve, and a path or host that nobody needs."""
    stored = study.study(PLAN, tmp_path / "s.json")
    assert set(stored) == {"date", "plan", "device", "seconds", "corpus", "versions", "runs"}
    assert time.strptime(stored["date"], "%Y-%m-%d")
    assert set(stored["versions"]) == {"python", "torch", "numpy"}
    one = stored["runs"]["shift/rope/1"]
    assert one["steps"] == 12
    assert set(one["scores"]) == {"8", "16"}
    assert set(one["geared"]) == set(experiments.GEARS_OF_THE_SHIFT)
    assert len(one["curve"]) == 1
    direct = run(SMALL, "rope", 1)
    assert one["scores"]["16"] == round(direct.scores[16], 4)
    found = stored["runs"]["inside/rope/0"]["inside"]
    assert [len(found[word]) for word in ("r2", "share", "offset")] == [3, 3, 2]


def test_a_finished_study_is_read_and_another_plan_is_refused(tmp_path):
    """Catches a study done twice, and results of two plans in one file."""
    path = tmp_path / "s.json"
    stored = study.study(PLAN[1:], path)
    assert study.study(PLAN[1:], path, say=pytest.fail) == stored
    with pytest.raises(StudyError, match="was made with another plan: remove it, or name another"):
        study.study(PLAN, path)
    with pytest.raises(StudyError, match="was made with another seconds"):
        study.study(PLAN[1:], path, seconds=60.0)


def test_a_cap_is_stored_with_the_steps_that_were_taken(tmp_path):
    """Catches a shortened training that looks like a whole one."""
    plan = (Part("shift", dataclasses.replace(SMALL, steps=10**6), ("none",), (0,)),)
    stored = study.study(plan, tmp_path / "s.json", seconds=0.3)
    assert stored["seconds"] == 0.3
    assert 0 < stored["runs"]["shift/none/0"]["steps"] < 10**6


def test_an_unknown_encoding_or_a_changed_corpus_ends_a_study_in_a_sentence(tmp_path, monkeypatch):
    """Catches a study that fails from inside after an hour."""
    bad = (Part("shift", SMALL, ("rotary",), (0,)),)
    with pytest.raises(ValueError, match=r"encoding must be 'none' or .* got 'rotary'"):
        study.study(bad, tmp_path / "s.json")
    bad = (Part("shift", SMALL, ("rope",), (0, "1")),)
    with pytest.raises(TypeError, match="seed must be an integer, got str"):
        study.study(bad, tmp_path / "s.json")

    def changed():
        raise ValueError("another corpus")

    monkeypatch.setattr(study, "text", changed)
    with pytest.raises(ValueError, match="another corpus"):
        study.study(PLAN, tmp_path / "s.json", say=pytest.fail)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        lambda stored: stored[: len(stored) // 2],
        lambda stored: b"",
        lambda stored: b"[]",
        lambda stored: b"3",
        lambda stored: stored.replace(b'"runs"', b'"walks"'),
        lambda stored: b"\xff\xfe",
    ],
)
@pytest.mark.parametrize("name", ["s.json", "s.json.partial"])
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path, name, damage):
    """Catches a traceback of json, and a study that overwrites what may still be saved."""
    path = tmp_path / "s.json"
    study.study(PLAN[1:], path)
    found = tmp_path / name
    data = damage(path.read_bytes())
    found.write_bytes(data)
    with pytest.raises(StudyError, match=f"{name} is damaged: remove it, or name another --out"):
        study.study(PLAN[1:], path, say=pytest.fail)
    assert found.read_bytes() == data


def test_where_nothing_can_be_written_nothing_is_trained(tmp_path, monkeypatch, capsys):
    """Catches an hour of training whose result has no place to go."""
    monkeypatch.setattr(study, "run", pytest.fail)
    with pytest.raises(StudyError, match=r"s.json.partial cannot be written: No such file"):
        study.study(PLAN, tmp_path / "missing" / "s.json")
    with pytest.raises(StudyError, match="cannot be read: Is a directory"):
        study.study(PLAN, tmp_path)

    def forbidden(*arguments, **words):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(study.Path, "write_text", forbidden)
    assert study.main(["--out", str(tmp_path / "s.json")]) == 1
    said = capsys.readouterr().err
    assert said == f"{tmp_path / 's.json.partial'} cannot be written: Permission denied\n"


def test_a_study_stopped_before_its_last_step_is_finished(tmp_path):
    """Catches a complete file that keeps the name of a partial one."""
    path = tmp_path / "s.json"
    stored = study.study(PLAN[1:], path)
    path.rename(tmp_path / "s.json.partial")
    assert study.study(PLAN[1:], path, say=pytest.fail) == stored
    assert [each.name for each in tmp_path.iterdir()] == ["s.json"]


def test_the_committed_study_is_of_the_plan_and_complete():
    """Catches a plan changed after its study, and a study cut short."""
    stored = json.loads((corpus.FOLDER / "study-cpu.json").read_text(encoding="utf-8"))
    plan = json.loads(json.dumps([dataclasses.asdict(part) for part in PLANS["cpu"]]))
    assert stored["plan"] == plan
    assert stored["device"] == "cpu"
    assert stored["seconds"] is None
    assert stored["corpus"] == corpus.TEXTS["python-topics"].sha256
    keys = [key for key, *_ in runs(PLANS["cpu"])]
    assert list(stored["runs"]) == keys
    assert all(
        each["steps"] == part.setting.steps
        for (key, part, *_), each in zip(runs(PLANS["cpu"]), stored["runs"].values(), strict=True)
    )


def test_every_plan_asks_the_same_questions_of_all_encodings():
    """Catches a larger plan that leaves an encoding out."""
    for plan in PLANS.values():
        assert [part.name for part in plan] == [part.name for part in PLANS["cpu"]]
        assert {part.encodings for part in plan if part.name in ("shift", "size")} == {ENCODINGS}
        assert len({key for key, *_ in runs(plan)}) == len(list(runs(plan)))


@pytest.mark.parametrize("module", ["study", "training", "claims", "experiments"])
def test_training_loads_no_matplotlib(module):
    """Catches a machine without screens or fonts that could not train."""
    code = f"import sys, posenc.lab.{module}\nprint('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
