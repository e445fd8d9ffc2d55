"""The vendored text, the synthetic tasks, and how pieces are taken of them."""

import hashlib
import re

import pytest
import torch

from posenc.lab import corpus, tasks


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_every_text_is_the_books_and_has_its_licence_beside_it():
    """Catches a changed corpus, and one that nobody may pass on."""
    for name, source in corpus.TEXTS.items():
        assert len(corpus.read(name)) > 100_000
        licence = (corpus.FOLDER / source.licence).read_text(encoding="utf-8")
        assert source.file in licence
        assert "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2" in licence
        assert "Changes made here" in licence


@pytest.mark.parametrize("change", [lambda data: data + b" ", lambda data: data[:-1]])
def test_a_changed_text_is_refused_in_a_sentence(tmp_path, change):
    """Catches numbers trained on another text, which no output would explain."""
    source = corpus.TEXTS["python-topics"]
    data = change((corpus.FOLDER / source.file).read_bytes())
    (tmp_path / source.file).write_bytes(data)
    found = hashlib.sha256(data).hexdigest()
    with pytest.raises(ValueError, match=f"must have the SHA-256 {source.sha256}, got {found}"):
        corpus.load(folder=tmp_path)


def test_a_missing_or_unknown_text_is_named(tmp_path):
    """Catches an error from inside, and a text looked for on the network."""
    with pytest.raises(FileNotFoundError, match="is missing: the corpus comes with the book"):
        corpus.load(folder=tmp_path)
    with pytest.raises(ValueError, match="text must be 'python-topics', got 'wikitext'"):
        corpus.load("wikitext")


def test_the_text_is_reduced_to_its_symbols():
    """Catches symbols lost, doubled spaces and a wrong case."""
    assert corpus.reduced(" If x==1,\n\n then:  YES. ") == "if x , then yes."
    whole = corpus.reduced(corpus.read())
    assert set(whole) == set(corpus.SYMBOLS)
    assert len(corpus.SYMBOLS) == len(set(corpus.SYMBOLS)) == 29
    assert not re.search("  ", whole)


def test_what_is_held_out_is_not_trained_on():
    """Catches an overlap of the two parts, and a text cut short."""
    both, whole = corpus.load(), corpus.reduced(corpus.read())
    parts = ["".join(corpus.SYMBOLS[i] for i in part) for part in (both.trained, both.held_out)]
    assert "".join(parts) == whole
    assert len(parts[1]) == pytest.approx(len(whole) / 10, rel=1e-3)


def test_the_answer_is_the_next_symbol():
    """Catches a batch off by one, in which a model copies, or guesses two ahead."""
    text = corpus.Corpus(torch.arange(100), torch.arange(100, 200))
    x, y = text.batch(50, 7, generator())
    assert torch.equal(y, x + 1)
    assert x.shape == (50, 7)
    assert x.min() == 0 or len(x[:, 0].unique()) > 10
    assert y.max() < 100
    x, y = text.windows(5, 20)
    assert torch.equal(y, x + 1)
    assert x.min() == 100
    assert y.max() < 200
    assert len(x[:, 0].unique()) == 5


def test_batches_repeat_by_their_generator_alone():
    """Catches texts drawn from a global generator."""
    text = corpus.load()
    first = text.batch(4, 16, generator(3))[0]
    torch.manual_seed(99)
    assert torch.equal(first, text.batch(4, 16, generator(3))[0])
    assert not torch.equal(first, text.batch(4, 16, generator(4))[0])


def test_a_piece_longer_than_the_text_is_refused():
    """Catches an index from inside."""
    text = corpus.Corpus(torch.arange(10), torch.arange(10))
    with pytest.raises(ValueError, match="length must be less than the text's 10, got 10"):
        text.windows(2, 10)


@pytest.mark.parametrize(
    ("task", "back"), [(tasks.say_previous, lambda n: 1), (tasks.half_back, lambda n: n // 2)]
)
@pytest.mark.parametrize("length", [2, 9, 32])
def test_a_task_answers_with_an_earlier_symbol(task, back, length):
    """Catches an offset of one, and a place that is scored without an answer."""
    x, y = task(6, length, generator(), symbols=5)
    for place in range(length):
        if place < back(length):
            assert (y[:, place] == tasks.UNSCORED).all()
        else:
            assert torch.equal(y[:, place], x[:, place - back(length)])
    assert x.min() >= 0
    assert x.max() < 5


def test_a_text_of_one_token_has_no_previous():
    """Catches a task without any scored place, whose loss is no number."""
    with pytest.raises(ValueError, match="length must be at least 2, got 1"):
        tasks.say_previous(3, 1, generator())
