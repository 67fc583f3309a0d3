import doctest

import keras
import numpy as np
import pytest
from sentencepiece import sentencepiece_model_pb2

from rembert_tf.checkpoints import vocabulary
from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.checkpoints.vocabulary import replace_vocabulary, resize_vocabulary
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.vocabulary import train_vocabulary
from rembert_tf.training.adamw import AdamW
from rembert_tf.training.config import DistributionConfig, OptimizerConfig
from rembert_tf.training.pretraining import masked_lm_trainer
from rembert_tf.training.trainer import Trainer

INPUT_TABLE = "rembert/embeddings/word_embeddings"
OUTPUT_TABLE = "masked_lm_head/output_embedding/table"
OUTPUT_BIAS = "masked_lm_head/output_embedding/bias"


def filled(model):
    """Gives every variable, biases too, values of its own."""
    rng = np.random.default_rng(0)
    for variable in model.weights:
        variable.assign(rng.normal(scale=0.3, size=variable.shape).astype("float32"))
    return model


def values(model):
    return {path: variable.numpy() for path, variable in variables_by_path(model).items()}


def vocabulary_paths(before):
    return [path for path in (INPUT_TABLE, OUTPUT_TABLE, OUTPUT_BIAS) if path in before]


def assert_rest_is_the_same(before, after):
    assert before.keys() == after.keys()
    for path in before.keys() - set(vocabulary_paths(before)):
        np.testing.assert_array_equal(after[path], before[path], err_msg=path)


# Resizing


@pytest.fixture(params=["untied", "tied, no projection", "encoder", "classifier"])
def model(request, config, coupled):
    model_class = {"encoder": RemBertEncoder, "classifier": RemBertForSequenceClassification}
    size = coupled if request.param.startswith("tied") else config
    size = size.replace(vocab_size=150, bos_token_id=2, eos_token_id=3)
    return filled(model_class.get(request.param, RemBertForMaskedLM)(size))


def test_tables_and_bias_grow_and_shrink_each_by_its_own_width(model):
    start = values(model)
    larger = resize_vocabulary(model, 157)
    smaller = resize_vocabulary(larger, 140)
    assert type(smaller) is type(model) and smaller.name == model.name
    for changed, rows in ((larger, 157), (smaller, 140)):
        after = values(changed)
        assert changed.config == model.config.replace(vocab_size=rows)
        assert_rest_is_the_same(start, after)
        for path in vocabulary_paths(start):
            assert after[path].shape == (rows, *start[path].shape[1:])
            np.testing.assert_array_equal(after[path][:140], start[path][:140])
            np.testing.assert_array_equal(after[path][140:150], start[path][140:rows][:10])
            mean = np.broadcast_to(start[path].mean(axis=0), after[path][150:].shape)
            np.testing.assert_allclose(after[path][150:], mean, rtol=1e-4, atol=1e-7)
    assert_rest_is_the_same(start, values(model))
    assert values(model)[INPUT_TABLE].shape[0] == 150


def test_a_grown_model_scores_old_pieces_as_before_and_new_ones_too(config, coupled):
    ids = np.array([[2, 7, 9, 3]])
    for size in (config, coupled):
        model = filled(RemBertForMaskedLM(size.replace(vocab_size=150)))
        larger = resize_vocabulary(model, 157)
        np.testing.assert_allclose(larger(ids)[..., :150], model(ids), rtol=0, atol=1e-6)
        logits = larger(np.array([[2, 156, 150, 3]]))
        assert logits.shape == (1, 4, 157) and np.isfinite(logits).all()


def test_what_a_saved_folder_holds_is_what_the_model_holds(model, tmp_path):
    changed = resize_vocabulary(model, 157)
    save_pretrained(changed, tmp_path / "model")
    loaded, report = load_pretrained(tmp_path / "model", type(model), strict=True)
    assert loaded.config == changed.config and not report.skipped
    for path, value in values(loaded).items():
        np.testing.assert_array_equal(value, values(changed)[path], err_msg=path)


def test_what_is_no_weight_is_carried_over(config):
    config = config.replace(hidden_dropout_prob=0.5)
    encoder = RemBertEncoder(config, add_pooler=False, dtype="mixed_bfloat16", name="mine")
    encoder.newly_made = ("rembert/layer_0/output/bias",)
    encoder.layer_1.trainable = False
    encoder(np.array([[1, 2]]), training=True)  # draws from the dropout seed
    changed = resize_vocabulary(encoder, 60)
    assert changed.newly_made == encoder.newly_made and changed.dtype_policy == encoder.dtype_policy
    assert [v.path for v in changed.trainable_variables] == [
        v.path for v in encoder.trainable_variables
    ]
    assert len(changed.trainable_variables) == len(changed.weights) - 16
    for old, new in zip(encoder.variables, changed.variables, strict=True):
        if "word_embeddings" not in old.path:
            np.testing.assert_array_equal(new, old, err_msg=old.path)


def test_special_pieces_are_not_dropped(config):
    model = RemBertEncoder(config.replace(bos_token_id=20, eos_token_id=30))
    assert resize_vocabulary(model, 31).config.vocab_size == 31
    with pytest.raises(ValueError, match="of eos_token_id 30. Received: vocab_size=30"):
        resize_vocabulary(model, 30)


# Inside a training run


def batch(vocab_size, seed):
    """Features, labels and weights of a masked batch, as the pipeline gives them."""
    rng = np.random.default_rng(seed)
    features = {
        "input_ids": rng.integers(0, vocab_size, (4, 8)),
        "masked_lm_positions": rng.integers(0, 8, (4, 3)),
    }
    return features, rng.integers(0, vocab_size, (4, 3)), np.ones((4, 3), "float32")


def step(trainer, features, labels, weights):
    # Without a graph, which takes longer to make.
    trainer.train_step((features, labels, weights), stop=False)


def go_on(model, optimizer):
    trainer = Trainer(model)
    trainer.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return trainer


def trained(config, frozen=False):
    """A trainer after three steps, its rate still in the warm-up."""
    model = filled(RemBertForMaskedLM(config))
    model.encoder.layer_0.trainable = not frozen
    trainer = masked_lm_trainer(
        model, OptimizerConfig(learning_rate=0.1, weight_decay=0.5), DistributionConfig(), 100
    )
    for seed in range(3):
        step(trainer, *batch(config.vocab_size, seed))
    return trainer


def slots(optimizer):
    return {variable.path: variable for variable in optimizer.variables if len(variable.shape)}


def is_of_pieces(path):
    return any(name in path for name in ("word_embeddings", "table", "output_embedding_bias"))


@pytest.mark.parametrize("tied", [False, True])
def test_optimizer_slots_change_with_the_tables(config, coupled, tied):
    trainer = trained((coupled if tied else config).replace(vocab_size=150), frozen=True)
    for rows in (157, 140):
        model, optimizer = resize_vocabulary(trainer.model, rows, optimizer=trainer.optimizer)
        assert int(optimizer.iterations.numpy()) == 3
        assert float(optimizer.learning_rate) == float(trainer.optimizer.learning_rate) > 0
        after = slots(optimizer)
        of_pieces = [path for path in after if is_of_pieces(path)]
        assert len(of_pieces) == (4 if tied else 6) and len(after) > 20
        for path, old in slots(trainer.optimizer).items():
            kept = slice(0, min(rows, 150) if path in of_pieces else None)
            np.testing.assert_array_equal(after[path][kept], old[kept], err_msg=path)
            if path in of_pieces:
                assert after[path].shape == (rows, *old.shape[1:])
                assert not np.any(after[path][150:]) and np.any(after[path][:150])
        before = values(model)
        again = go_on(model, optimizer)
        features, labels, weights = batch(rows, seed=9)
        labels[:, 0] = rows - 1  # a new piece
        step(again, features, labels, weights)
        moved = [path for path, value in values(model).items() if np.any(value != before[path])]
        assert {INPUT_TABLE, OUTPUT_BIAS} <= set(moved) and int(optimizer.iterations.numpy()) == 4
        assert not [path for path in moved if "layer_0" in path]


OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "without slots": lambda: keras.optimizers.SGD(0.1),
    "slots that start at 0.1": lambda: keras.optimizers.Adagrad(0.1),
    "a number beside the slots": lambda: keras.optimizers.Nadam(0.1),
    "slots that start as the weights": lambda: keras.optimizers.ScheduleFreeAdamW(0.1),
    "two kinds of slots": lambda: keras.optimizers.Muon(0.1),
    "accumulated gradients": lambda: AdamW(0.1, gradient_accumulation_steps=2),
    "averages": lambda: AdamW(0.1, use_ema=True),
    "loss scale": lambda: keras.optimizers.LossScaleOptimizer(AdamW(0.1, weight_decay=0.5)),
    "loss scale, averages": lambda: keras.optimizers.LossScaleOptimizer(AdamW(use_ema=True)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_optimizer_goes_on_where_it_was(config, name):
    model, optimizer = filled(RemBertForMaskedLM(config)), OPTIMIZERS[name]()
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    inner.exclude_from_weight_decay(var_list=[model.masked_lm_head.dense.bias])
    optimizer.build(model.trainable_variables)
    rng = np.random.default_rng(1)
    for variable in optimizer.variables:
        variable.assign(rng.integers(1, 99, variable.shape))
    larger, changed = resize_vocabulary(model, 60, optimizer=optimizer)
    assert type(changed) is type(optimizer)
    fresh = OPTIMIZERS[name]()
    fresh.build(larger.trainable_variables)
    for old, new, start in zip(
        optimizer.variables, changed.variables, fresh.variables, strict=True
    ):
        assert not len(old.shape) or new.path == old.path
        rows = slice(0, 50) if is_of_pieces(new.path) else ...
        np.testing.assert_array_equal(new.numpy()[rows], old, err_msg=new.path)
        if is_of_pieces(new.path):
            mean = np.broadcast_to(np.mean(old.numpy(), axis=0), new[50:].shape)
            expected = mean if new.path.endswith("_average") else start[50:]
            np.testing.assert_allclose(new[50:], expected, rtol=1e-5, err_msg=new.path)
    inner = getattr(changed, "inner_optimizer", changed)
    undecayed = [v.path for v in larger.trainable_variables if not inner._use_weight_decay(v)]
    assert undecayed == [larger.masked_lm_head.dense.bias.path]


def test_slots_of_another_shape_are_refused_by_name(config, tokenizer):
    optimizer = keras.optimizers.Adafactor(0.1)
    model = RemBertForMaskedLM(config.replace(vocab_size=300))
    optimizer.build(model.trainable_variables)
    message = (
        r"slots of the shape of .* Received: a Adafactor with adafactor/word_embeddings \[300\]"
    )
    with pytest.raises(ValueError, match=message):
        resize_vocabulary(model, 310, optimizer=optimizer)
    with pytest.raises(ValueError, match=message):  # as many pieces, in another order
        replace_vocabulary(model, tokenizer, reordered(tokenizer), optimizer=optimizer)


def test_an_optimizer_of_another_model_is_refused(config):
    optimizer = keras.optimizers.SGD()
    optimizer.build(RemBertForMaskedLM(config).trainable_variables)
    for other in (optimizer, keras.optimizers.SGD()):
        with pytest.raises(ValueError, match="built on the variables of `model`. Received: a "):
            resize_vocabulary(RemBertForMaskedLM(config), 60, optimizer=other)


def test_a_trainer_is_no_model(config):
    with pytest.raises(ValueError, match="its attribute `model`.*Received: a Trainer"):
        resize_vocabulary(Trainer(RemBertForMaskedLM(config)), 60)


# A head that we do not know


class MaskedLMWithTopics(RemBertForMaskedLM):
    """Scores pieces by topic, too: a head with an axis for the pieces."""

    def __init__(self, config, *, name="with_topics", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.topics = keras.layers.Dense(self.width(), name="topics")
        self.topics.build((None, 5))

    def width(self):
        return self.config.vocab_size


class Declared(MaskedLMWithTopics):
    vocabulary_axes = {"topics/kernel": 1, "topics/bias": 0}


def test_an_unknown_head_is_refused_and_told_what_to_implement(config):
    message = (
        r"topics/kernel \[5, 50\] may have an axis .* Add it to MaskedLMWithTopics: .*"
        r'vocabulary_axes = \{"topics/kernel": AXIS\}.*`config.vocab_size`'
    )
    with pytest.raises(ValueError, match=message):
        resize_vocabulary(MaskedLMWithTopics(config), 60)


def test_a_declared_head_is_resized(config):
    model = filled(Declared(config))
    before, after = values(model), values(resize_vocabulary(model, 60))
    assert after["topics/kernel"].shape == (5, 60) and after["topics/bias"].shape == (60,)
    np.testing.assert_array_equal(after["topics/kernel"][:, :50], before["topics/kernel"])
    mean = before["topics/kernel"].mean(axis=1)
    np.testing.assert_allclose(after["topics/kernel"][:, 55], mean, rtol=1e-4, atol=1e-7)


def test_a_head_that_does_not_follow_the_configuration_is_refused(config):
    class Fixed(Declared):
        def width(self):
            return 50

    message = r"topics/kernel must have the shape \[5, 60\] .* Received: shape \[5, 50\]"
    with pytest.raises(ValueError, match=message):
        resize_vocabulary(Fixed(config), 60)

    class OneMore(MaskedLMWithTopics):
        def width(self):
            return self.config.vocab_size + 1

    message = r"topics/kernel must have the shape \[5, 51\] .* Received: shape \[5, 61\]"
    with pytest.raises(ValueError, match=message):
        resize_vocabulary(OneMore(config), 60)


def test_an_axis_that_is_as_long_by_chance_is_declared_as_none(config):
    class ByChance(Declared):
        vocabulary_axes = {"topics/kernel": None, "topics/bias": None}

        def width(self):
            return 50

    model = filled(ByChance(config))
    after = values(resize_vocabulary(model, 60))
    np.testing.assert_array_equal(after["topics/kernel"], model.topics.kernel)


# Replacing


@pytest.fixture(scope="module")
def other_tokenizer(text_folder, tmp_path_factory):
    """175 pieces, learnt from four of the ten languages: some are those of `tokenizer`."""
    path = train_vocabulary(
        VocabularyConfig(
            input_dir=str(text_folder), output=str(tmp_path_factory.mktemp("other")),
            vocab_size=175, languages=("el", "en", "he", "ru"),
        )
    )  # fmt: skip
    return RemBertTokenizer.from_file(path)


def reordered(tokenizer):
    """The same pieces, every id another one."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model_bytes)
    pieces = list(proto.pieces)
    del proto.pieces[:]
    proto.pieces.extend(pieces[::-1])
    return RemBertTokenizer(proto.SerializeToString())


def test_pieces_of_both_vocabularies_keep_their_rows(config, tokenizer, other_tokenizer):
    model = filled(RemBertForMaskedLM(config.replace(vocab_size=310)))  # ten rows are unused
    changed = replace_vocabulary(model, tokenizer, other_tokenizer)
    before, after = values(model), values(changed)
    assert changed.config.vocab_size == 175
    assert_rest_is_the_same(before, after)
    old_ids = {piece: index for index, piece in enumerate(tokenizer.pieces())}
    kept = new = 0
    for index, piece in enumerate(other_tokenizer.pieces()):
        for path in vocabulary_paths(before):
            if piece in old_ids:
                np.testing.assert_array_equal(after[path][index], before[path][old_ids[piece]])
                kept += 1
            elif piece.startswith("▁"):  # so split in a text, too
                (ids,) = tokenizer.encode([piece.replace("▁", " ")])
                expected = before[path][ids[ids != tokenizer.unk_id]].mean(axis=0)
                np.testing.assert_allclose(after[path][index], expected, rtol=1e-5, atol=1e-7)
                new += 1
    assert kept > 100 and new > 30


def test_a_run_goes_on_under_other_ids_as_if_nothing_had_happened(config, tokenizer):
    new_tokenizer = reordered(tokenizer)
    unbroken, changed = (
        trained(config.replace(vocab_size=300)),
        trained(config.replace(vocab_size=300)),
    )
    model, optimizer = replace_vocabulary(
        changed.model, tokenizer, new_tokenizer, optimizer=changed.optimizer
    )
    assert model.config.bos_token_id == new_tokenizer.cls_id == 297
    assert model.config.eos_token_id == 296 and model.config.pad_token_id == 299
    again = go_on(model, optimizer)
    for seed in (7, 8):
        features, labels, weights = batch(300, seed)
        step(unbroken, features, labels, weights)
        features["input_ids"] = 299 - features["input_ids"]
        step(again, features, 299 - labels, weights)
    before, after = values(unbroken.model), values(model)
    for path in before:
        expected = before[path][::-1] if path in vocabulary_paths(before) else before[path]
        np.testing.assert_allclose(after[path], expected, rtol=0, atol=2e-5, err_msg=path)


def test_a_tokenizer_of_another_model_is_refused(config, tokenizer, other_tokenizer):
    with pytest.raises(ValueError, match="Received: vocab_size=300, model vocab_size=50"):
        replace_vocabulary(RemBertEncoder(config), tokenizer, other_tokenizer)


def test_examples(config, tokenizer):
    example_config = config.replace(vocab_size=300)
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner()
    names = {**vars(vocabulary), "tokenizer": tokenizer, "RemBertForMaskedLM": RemBertForMaskedLM}
    for function, size in ((resize_vocabulary, config.replace(bos_token_id=2, eos_token_id=3)),
                           (replace_vocabulary, example_config)):  # fmt: skip
        for example in finder.find(function, globs={**names, "config": size}):
            runner.run(example)
    assert runner.summarize(verbose=False) == (0, 4)
