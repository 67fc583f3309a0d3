import numpy as np
import pytest

from rembert_tf.evaluation import retrieval
from rembert_tf.evaluation.thresholds import MiningThreshold, best_threshold


@pytest.fixture(params=[4096, 7], ids=["one block", "many blocks"])
def block(request, monkeypatch):
    monkeypatch.setattr(retrieval, "_BLOCK", request.param)


def vectors(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def cosines(x, y):
    x, y = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y))
    return x @ y.T


def test_nearest_is_the_highest_cosine_whatever_the_lengths(block):
    x, y = vectors(20, 8), vectors(50, 8, seed=1) * np.linspace(0.1, 9, 50)[:, None].astype("f")
    assert retrieval.nearest(x, y).tolist() == cosines(x, y).argmax(axis=1).tolist()


def test_nearest_by_euclidean_distance(block):
    x, y = vectors(20, 8) + 100, vectors(50, 8, seed=1) * 3 + 100
    distances = np.linalg.norm(x[:, None].astype(float) - y[None], axis=2)
    assert retrieval.nearest(x, y, distance="euclidean").tolist() == distances.argmin(1).tolist()


def test_of_equally_near_ones_the_first_is_nearest(block):
    x = vectors(3, 4)
    keys = np.concatenate([vectors(5, 4, seed=1), x, x, -x, x])
    assert retrieval.nearest(x, keys).tolist() == [5, 6, 7]
    forward, _ = retrieval.neighbours(x, keys, 2)
    assert forward.index.tolist() == [[5, 8], [6, 9], [7, 10]]


def test_l2_gold_vectors_find_every_sorted_line():
    """Tatoeba: English is sorted, and the gold label of a line is where it was before."""
    source = vectors(40, 8)
    order = np.random.default_rng(3).permutation(40)
    assert retrieval.nearest(source[order], source).tolist() == order.tolist()


def test_shifting_takes_the_offset_between_languages_away():
    english = vectors(30, 6)
    german = english + np.float32(5) * np.eye(6, dtype="f")[0] + 0.01 * vectors(30, 6, seed=1)
    right = np.arange(30)
    before = (retrieval.nearest(english, german, distance="euclidean") == right).mean()
    moved = retrieval.shifted(english, german)
    after = (retrieval.nearest(moved, german, distance="euclidean") == right).mean()
    assert before < 0.9 < after == 1
    in_another_order = retrieval.shifted(english, german[::-1])
    np.testing.assert_allclose(in_another_order, moved, atol=1e-5)
    few = retrieval.shifted(english, german[:10])
    np.testing.assert_allclose(few.mean(axis=0), german[:10].mean(axis=0), atol=1e-5)


def test_neighbours_in_both_directions(block):
    x, y = vectors(23, 8), vectors(31, 8, seed=1)
    forward, backward = retrieval.neighbours(x, y, 4)
    for found, table in ((forward, cosines(x, y)), (backward, cosines(y, x))):
        expected = np.argsort(-table, axis=1)[:, :4]
        assert found.index.tolist() == expected.tolist()
        np.testing.assert_allclose(
            found.similarity, np.take_along_axis(table, expected, 1), rtol=1e-5, atol=1e-6
        )
        assert found.similarity.dtype == np.float32


def test_with_fewer_vectors_than_neighbours_all_are_neighbours(block):
    forward, backward = retrieval.neighbours(vectors(2, 4), vectors(9, 4, seed=1), 4)
    assert forward.index.shape == (2, 4)
    assert sorted(backward.index[0]) == [0, 1]


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_margins_by_the_definition(block, margin):
    """Artetxe & Schwenk 2019, on a whole matrix; then greedily one to one, best first."""
    x, y = np.abs(vectors(17, 8)), np.abs(vectors(19, 8, seed=1))
    table = cosines(x, y)
    of_x = np.sort(table, axis=1)[:, -4:].mean(axis=1)
    of_y = np.sort(table, axis=0)[-4:].mean(axis=0)
    context = (of_x[:, None] + of_y[None]) / 2
    score = {"ratio": table / context, "distance": table - context, "absolute": table}[margin]
    proposals = set()
    for i in range(17):
        near = np.argsort(-table[i])[:4]
        proposals.add((i, int(near[score[i, near].argmax()])))
    for j in range(19):
        near = np.argsort(-table[:, j])[:4]
        proposals.add((int(near[score[near, j].argmax()]), j))
    expected, used_x, used_y = [], set(), set()
    for i, j in sorted(proposals, key=lambda pair: -score[pair]):
        if i not in used_x and j not in used_y:
            expected.append((i, j))
            used_x.add(i)
            used_y.add(j)
    pairs = retrieval.mine(x, y, margin=margin)
    assert list(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)) == expected
    np.testing.assert_allclose(pairs.score, [score[p] for p in expected], rtol=1e-4)


def test_mining_finds_planted_translations_before_anything_else(block):
    x, y = vectors(60, 64), vectors(80, 64, seed=1)
    y[30:50] = x[10:30] + 0.2 * vectors(20, 64, seed=2)
    pairs = retrieval.mine(x, y)
    assert {(s, t) for s, t in zip(pairs.source[:20], pairs.target[:20], strict=True)} == {
        (10 + i, 30 + i) for i in range(20)
    }
    assert len(set(pairs.source.tolist())) == len(pairs.source)
    assert (np.diff(pairs.score) <= 0).all()


def test_vectors_of_zeros_are_no_ones_neighbour_and_no_nan():
    x = vectors(5, 4)
    x[2] = 0
    assert np.isfinite(retrieval.mine(x, np.abs(vectors(6, 4, seed=1))).score).all()


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.zeros((2, 3), "f"), np.zeros((2, 4), "f"), r"x?queries.shape=\(2, 3\)"),
        (np.zeros((0, 3), "f"), np.zeros((2, 3), "f"), "at least one vector"),
        (np.zeros(3, "f"), np.zeros((2, 3), "f"), "Received: "),
        (np.array([[1, 2], [np.nan, 0]], "f"), np.zeros((2, 2), "f"), r"finite.*queries\[1\]"),
    ],
)
def test_arrays_that_are_no_vectors_are_refused(x, y, words):
    with pytest.raises(ValueError, match=words):
        retrieval.nearest(x, y)


# The threshold (case L5).


def test_best_threshold_against_every_cut():
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal(1, 0.2, 200), 2)  # with ties
    right = rng.random(200) < np.clip(scores - 0.5, 0, 1)
    threshold, f1 = best_threshold(scores, right, num_gold=150)

    def f1_at(cut):
        kept = scores >= cut
        return 2 * right[kept].sum() / (kept.sum() + 150)

    assert f1 == pytest.approx(max(f1_at(cut) for cut in scores))
    assert f1_at(threshold) == pytest.approx(f1)
    assert threshold not in scores  # between two scores


def test_equal_scores_are_kept_or_dropped_together():
    threshold, f1 = best_threshold(np.array([2.0, 1.0, 1.0]), np.array([True, True, False]), 2)
    assert f1 == pytest.approx(4 / 5)
    assert threshold == 1.0


def test_without_a_right_pair_nothing_is_kept():
    assert best_threshold(np.array([1.0, 2.0]), np.array([False, False]), 3) == (np.inf, 0)
    assert best_threshold(np.array([]), np.array([], bool), 3) == (np.inf, 0)


@pytest.mark.parametrize(
    ("scores", "right", "gold"), [([1.0], [True, False], 1), ([1.0], [True], 0)]
)
def test_best_threshold_refuses(scores, right, gold):
    with pytest.raises(ValueError, match="Received: "):
        best_threshold(np.array(scores), np.array(right), gold)


SETTINGS = {"layer": 7, "pooling": "first_token", "margin": "ratio", "neighbours": 4}


def test_l5_the_threshold_of_dev_is_stored_and_applied_to_test(tmp_path):
    path = str(tmp_path / "thresholds" / "zh.json")
    found = MiningThreshold(
        threshold=1.15, dev_f1=0.9, dev_gold=257, language="zh", settings=SETTINGS
    )
    found.save(path)
    loaded = MiningThreshold.load(path, language="zh", settings=SETTINGS)
    assert loaded == found
    scores = np.array([1.2, 1.15, 1.1], np.float32)
    assert loaded.keeps(scores).tolist() == [True, float(np.float32(1.15)) >= 1.15, False]


def test_l5_a_test_run_without_a_fitting_threshold_is_refused(tmp_path):
    path = tmp_path / "zh.json"
    with pytest.raises(FileNotFoundError, match="no stored threshold.*never from test"):
        MiningThreshold.load(str(path), language="zh", settings=SETTINGS)
    MiningThreshold(
        threshold=1.15, dev_f1=0.9, dev_gold=257, language="zh", settings=SETTINGS
    ).save(str(path))
    with pytest.raises(ValueError, match=r"zh\.json: .*language='zh'.*Received: language='de'"):
        MiningThreshold.load(str(path), language="de", settings=SETTINGS)
    with pytest.raises(ValueError, match=r"layer=7, .*Received: layer=8"):
        MiningThreshold.load(str(path), language="zh", settings=SETTINGS | {"layer": 8})
    path.write_text('{"threshold": 1}')
    with pytest.raises(ValueError, match=r"zh\.json: this is no stored threshold"):
        MiningThreshold.load(str(path), language="zh", settings=SETTINGS)
