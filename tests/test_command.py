"""``python -m posenc CONFIG.json`` says the same to a person and to a program, or one sentence."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from posenc import Frequencies, frequencies, phases, rope_from_config, wavelengths
from posenc.__main__ import main
from posenc.checkpoints.report import LOST, bands, first_lost

LLAMA3 = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_attention_heads": 2,
    "max_position_embeddings": 4096,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 512,
    },
}
SAID = """\
model             llama
head              16 channels; turning: all
pairs             8, halves (i, i + 8)
base              500000
rule              llama3: factor 8, low_freq_factor 1, high_freq_factor 4, \
original_max_position_embeddings 512
attention factor  1, on cosines and sines
softmax scale     0.25
length            original 512 tokens, allowed 4096
never turn        pairs 3 to 7: 5 of 8 make no full turn within 512 tokens
float32 angles    more than 0.001 radian wrong from position 84510 on (pair 1 first)
bands             pairs 0 to 1 kept
                  pair 2 multiplied by 0.7271
                  pairs 3 to 7 divided by 8
wavelengths, in tokens per turn
     0      6.283       32.4      229.8       6893  3.554e+04  1.833e+05  9.451e+05  4.874e+06
where each value comes from
  head_dim                          hidden_size / num_attention_heads
  rotary_dim                        code of model_type 'llama'
  base                              rope_theta
  original_max_position_embeddings  original_max_position_embeddings in the rope dictionary
  interleaved                       code of model_type 'llama'
  softmax_scale                     head_dim ** -0.5
  max_position_embeddings           max_position_embeddings
"""
GEMMA4 = {"model_type": "gemma4_text", "global_head_dim": 16}
PHI = {
    "model_type": "phi3",
    "hidden_size": 32,
    "num_attention_heads": 2,
    "partial_rotary_factor": 0.5,
    "max_position_embeddings": 4096,
    "original_max_position_embeddings": 512,
    "rope_scaling": {"type": "su", "short_factor": [1.0] * 4, "long_factor": [0.5, 1.0, 2, 3]},
}
V3 = {"model_type": "deepseek_v3", "max_position_embeddings": 4096}


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command on a configuration; its status, and what it wrote."""

    def ran(config, *words):
        file = tmp_path / "config.json"
        file.write_text(json.dumps(config))
        try:
            status = main([str(file), *words])
        except SystemExit as leaving:
            status = leaving.code
        return (status, *capsys.readouterr())

    return ran


def test_what_a_person_reads(run):
    """Golden: every line of one configuration."""
    assert run(LLAMA3) == (0, SAID, "")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (LLAMA3, ()),
        (GEMMA4, ("--layer-type", "full_attention")),
        (GEMMA4, ("--layer-type", "sliding_attention")),
        (PHI, ("--seq-len", "600")),
        (PHI, ("--seq-len", "60")),
        (V3, ()),
    ],
)
def test_both_outputs_say_the_same(run, config, words):
    """Catches a number that one of them computes, rounds or forgets in its own way."""
    status, text, _ = run(config, *words)
    _, raw, _ = run(config, *words, "--json")
    assert status == 0
    found = json.loads(raw, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    options = dict(zip(words[::2], words[1::2], strict=True))
    seq_len = options.get("--seq-len")
    layer_type = options.get("--layer-type")
    rope = rope_from_config(
        config, layer_type=layer_type, seq_len=None if seq_len is None else int(seq_len)
    )
    assert found["frequencies"] == rope.frequencies.omega.tolist()
    waves = wavelengths(rope.frequencies)
    assert [np.inf if w is None else w for w in found["wavelengths"]] == waves.tolist()
    for name in ("interleaved", "head_dim", "rotary_dim", "rotary_start", "softmax_scale"):
        assert found[name] == getattr(rope, name)
    assert found["attention_factor"] == rope.frequencies.attention_factor
    length = rope.original_max_position_embeddings
    assert found["never_turn"] == np.flatnonzero(waves > length).tolist()
    assert found["source"] == rope.source
    rows = dict(re.findall(r"^(\w[\w ]*?)  +(.*)$", text, re.M))
    assert rows["softmax scale"] == f"{found['softmax_scale']:.6g}"
    assert rows["attention factor"].startswith(f"{found['attention_factor']:.6g},")
    assert rows["pairs"].startswith(f"{len(waves)}, {'neigh' if rope.interleaved else 'halves'}")
    assert rows["head"].startswith(f"{rope.head_dim} channels")
    assert ("turning: all" in text) == (rope.rotary_dim == rope.head_dim)
    assert f"position {found['float32_lost']['position']} on" in text
    never = len(found["never_turn"])
    assert (
        rows["never turn"].startswith("none") if not never else f"{never} of {len(waves)}" in text
    )
    shown = text.split("wavelengths")[1].split("where")[0]
    for wave in found["wavelengths"]:
        assert "never" in shown if wave is None else f" {wave:.4g}" in shown
    for name, words in found["source"].items():
        assert re.search(rf"^  {name} +{re.escape(words)}$", text, re.M)


@pytest.mark.parametrize("config", (LLAMA3, PHI, V3), ids=("llama3", "longrope", "default"))
def test_bands_cover_every_pair_once(config):
    """Catches a pair that no band holds, and an effect that its ratios contradict."""
    rope = rope_from_config(config, seq_len=600)
    runs = bands(rope)
    covered = [pair for run in runs for pair in range(run["first"], run["last"] + 1)]
    assert covered == list(range(len(rope.frequencies)))
    ratio = rope.frequencies.omega / frequencies(rope.rotary_dim, rope.base).omega
    bounds = {"kept": (1, 1), "divided": (1 / 8, 1 / 8), "slowed": (0, 1), "quickened": (1, 9)}
    for run in runs:
        low, high = bounds[run["effect"]]
        inside = ratio[run["first"] : run["last"] + 1]
        assert ((inside > low * (1 - 1e-12)) & (inside < high * (1 + 1e-12))).all()
        np.testing.assert_allclose(run["ratio"], [inside[0], inside[-1]])
    words = [run["effect"] for run in runs]
    assert (
        words
        == {
            "llama3": ["kept", "slowed", "divided"],
            "longrope": ["quickened", "kept", "slowed"],
            "default": ["kept"],
        }[rope.rope_type]
    )


@pytest.mark.parametrize(("dim", "base"), [(128, 1e4), (64, 5e5), (4, 1e4)])
def test_the_first_angle_that_float32_loses(dim, base):
    """The same by another way: every position up to it against exact phases."""
    spectrum = frequencies(dim, base)
    found = first_lost(spectrum)
    narrow = spectrum.omega.astype(np.float32)
    step = 2**18
    for start in range(0, found["position"] + 1, step):
        positions = range(start, min(start + step, found["position"] + 1))
        cos, sin = phases(positions, spectrum, dtype=np.float64)
        angles = np.array(positions, dtype=np.float32)[:, None] * narrow
        chord = np.hypot(np.cos(angles.astype(float)) - cos, np.sin(angles.astype(float)) - sin)
        lost = np.argwhere(2 * np.arcsin(chord / 2) > LOST + 1e-9)
        if positions[-1] < found["position"]:
            assert not len(lost)
    np.testing.assert_array_equal(lost, [[len(positions) - 1, found["pair"]]])


def test_angles_that_float32_never_loses():
    """2**24 + 1 is the first position that is not in float32; a slow hand does not notice."""
    assert first_lost(Frequencies([1.0])) == {"position": 2**24 + 1, "pair": 0}
    assert first_lost(Frequencies([1e-9, 0.0])) is None


@pytest.mark.parametrize(
    ("change", "words", "sentence"),
    [
        ({"rope_scaling": {"rope_type": "linear", "factr": 2}}, (), "is 'factor' meant?"),
        ({"rope_scaling": {"rope_type": "linear"}}, (), "factor is missing"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 0.5}}, (), "factor must be at least"),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2}}, (), "seq_len must be given"),
        ({"rope_scaling": 3}, (), "rope_scaling must be a mapping, got int"),
        ({"head_dim": 15}, (), "head_dim must be positive and even, got 15"),
        ({"model_type": "lama"}, (), "is 'llama' meant?"),
        ({}, ("--seq-len", "x"), "invalid int value: 'x'"),
        ({}, ("--seq-len", "0"), "seq_len must be at least 1, got 0"),
        ({}, ("--layer-type", "x"), "layer_type must be None"),
        ({}, ("--jason",), "unrecognized arguments: --jason"),
    ],
)
@pytest.mark.parametrize("form", ((), ("--json",)), ids=("text", "json"))
def test_errors_are_one_sentence_and_status_2(run, change, words, sentence, form):
    """Catches a traceback, a usage text, and half a report before the error."""
    status, out, said = run({**LLAMA3, **change}, *words, *form)
    assert status == 2
    assert out == ""
    assert said.startswith("posenc: ")
    assert said.count("\n") == 1
    assert sentence in said


def test_an_empty_path_is_one_sentence(capsys):
    """Catches ``python -m posenc "$UNSET"`` reading the folder it stands in."""
    assert main([""]) == 2
    assert capsys.readouterr() == (
        "",
        "posenc: config must be the path of a file or a folder, got an empty one\n",
    )


def test_widths_of_every_size_fit_in_memory(monkeypatch):
    """Catches tables of a fixed number of rows: 65536 of 32768 pairs are 16 GiB."""
    largest = 0
    real = np.arange

    def counted(*bounds, **how):
        nonlocal largest
        largest = max(largest, real(*bounds, **how).size)
        return real(*bounds, **how)

    spectrum = Frequencies([1e-2] + [1e-9] * 2**13)
    monkeypatch.setattr(np, "arange", counted)
    assert first_lost(spectrum) == first_lost(Frequencies([1e-2, 1e-9]))
    largest = 0
    first_lost(spectrum)
    assert 0 < largest * len(spectrum) <= 2**22


UMLAUT = {
    "model_type": "qwen2",
    "hidden_size": 32,
    "num_attention_heads": 2,
    "layer_types": ["caf\u00e9\ud800"],
    "rope_parameters": {"caf\u00e9\ud800": {"rope_type": "default", "rope_theta": 1e4}},
}


def posenc(file, **how):
    """Run the command as a program, its errors as text."""
    command = [sys.executable, "-m", "posenc", str(file)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, **how)


def test_words_that_a_terminal_does_not_know_are_spelt_out(tmp_path):
    """Catches a UnicodeEncodeError after everything was computed."""
    (tmp_path / "config.json").write_text(json.dumps(UMLAUT))
    for encoding, name in (("ascii", r"caf\xe9\ud800"), ("utf-8", "caf\u00e9\\ud800")):
        env = {**os.environ, "PYTHONIOENCODING": encoding}
        done = posenc(tmp_path, stdout=subprocess.PIPE, env=env, encoding=encoding)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"layers of type {name}\n" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device here")
def test_an_answer_that_cannot_be_printed_is_one_sentence(tmp_path):
    """Catches a traceback, and an exit status of success, where nothing arrived."""
    (tmp_path / "config.json").write_text(json.dumps(LLAMA3))
    with open("/dev/full", "w") as full:
        done = posenc(tmp_path, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "posenc: the answer cannot be printed: No space left on device\n"
    reader, writer = os.pipe()
    os.close(reader)  # ``| head``, which has gone
    done = posenc(tmp_path, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_command_itself(tmp_path):
    """The module runs as a program; a file that is not there is an error of one line."""
    command = [sys.executable, "-m", "posenc"]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA3))
    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (SAID, "")
    (tmp_path / "empty").mkdir()
    for asked, gone in (("gone.json", "gone.json"), ("empty", "empty/config.json")):
        done = subprocess.run([*command, tmp_path / asked], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        unread = f"{tmp_path / gone} cannot be read: No such file or directory"
        assert done.stderr == f"posenc: {unread}\n"
