import keras
import pytest
import tensorflow as tf

from rembert_tf.checkpoints import layouts
from rembert_tf.checkpoints.folder import save_pretrained
from rembert_tf.models.encoder import RemBertEncoder


def write_tf1(folder):
    folder.mkdir()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.get_variable("bert/pooler/dense/bias", [3])
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, str(folder / "model.ckpt"), write_state=False)


def write_tf2(folder, **values):
    tf.train.Checkpoint(**{k: tf.Variable(v) for k, v in values.items()}).write(
        str(folder / "ckpt")
    )


def test_model_folders(config, tmp_path):
    save_pretrained(RemBertEncoder(config), tmp_path / "ours")
    assert layouts.find_layout(tmp_path / "ours") == "hugging_face"
    assert layouts.find_layout(tmp_path / "ours" / "model.safetensors") == "hugging_face"
    (tmp_path / "ours" / "config.json").unlink()
    assert layouts.find_layout(tmp_path / "ours") == "weights"
    assert "put the config.json of that model beside them" in layouts.describe(tmp_path / "ours")


def test_tensorflow_checkpoints(tmp_path):
    write_tf1(tmp_path / "google")
    for path in ("google", "google/model.ckpt", "google/model.ckpt.index"):
        assert layouts.find_layout(tmp_path / path) == "google_tf1"
        assert layouts.checkpoint_prefix(tmp_path / path) == str(tmp_path / "google/model.ckpt")
    assert "rembert-convert --input=" in layouts.describe(tmp_path / "google")

    write_tf2(tmp_path / "garden", encoder=1.0)
    assert layouts.find_layout(tmp_path / "garden") == "model_garden"
    write_tf2(tmp_path / "run", model=1.0, tokens_seen=7)
    assert layouts.find_layout(tmp_path / "run") == "run"
    assert "the trained model is in <model_dir>/model" in layouts.describe(tmp_path / "run")


def test_the_latest_of_several_checkpoints_is_the_one_that_the_state_file_names(tmp_path):
    checkpoint = tf.train.Checkpoint(x=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path / "many"), max_to_keep=3)
    manager.save(), manager.save()
    assert layouts.checkpoint_prefix(tmp_path / "many").endswith("ckpt-2")
    (tmp_path / "many").rename(tmp_path / "moved")
    assert layouts.checkpoint_prefix(tmp_path / "moved") == str(tmp_path / "moved/ckpt-2")
    (tmp_path / "moved" / "checkpoint").unlink()
    assert layouts.checkpoint_prefix(tmp_path / "moved") is None
    description = layouts.describe(tmp_path / "moved")
    assert description.endswith("give the prefix of one of them: ckpt-1, ckpt-2")
    (tmp_path / "moved" / "ckpt-1.index").write_bytes(b"cut off")
    with pytest.raises(ValueError, match="ckpt-1.index: damaged or half written"):
        layouts.find_layout(tmp_path / "moved/ckpt-1")


def test_what_gives_no_weights_says_what_to_do(config, tmp_path):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.build((None, 2))
    model.save(tmp_path / "model.keras")
    assert layouts.find_layout(tmp_path / "model.keras") == "keras"
    assert "keras.saving.load_model" in layouts.describe(tmp_path / "model.keras")
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "saved_model.pb").touch()
    assert layouts.find_layout(tmp_path / "served") == "saved_model"


@pytest.mark.parametrize("name", ["nothing", "."])
def test_nothing_known(name, tmp_path):
    assert layouts.find_layout(tmp_path / name) is None
    assert layouts.describe(tmp_path / name).startswith("no layout that is known here")
