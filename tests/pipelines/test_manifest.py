import pytest

from rembert_tf.pipelines.manifest import Manifest


def test_a_manifest_comes_back_as_it_was_written(records_folder):
    manifest = Manifest.read(records_folder)
    manifest.check_sizes()
    content = (records_folder / "manifest.json").read_bytes()
    manifest.write()
    assert (records_folder / "manifest.json").read_bytes() == content
    assert Manifest.read(records_folder) == manifest
    assert list(manifest.select(["ru", "en"]).languages) == ["en", "ru"]
    assert manifest.select([]) == manifest


def test_manifests_that_cannot_be_used_are_refused(records_folder, tokenizer, tmp_path):
    with pytest.raises(FileNotFoundError, match="manifest.json: no such file; .* cut short"):
        Manifest.read(tmp_path)
    for content in ("{", '{"format": 99}', '{"format": 2}'):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(ValueError, match="manifest.json: not a manifest of records"):
            Manifest.read(tmp_path)
    manifest = Manifest.read(records_folder)
    with pytest.raises(ValueError, match="`languages` must be among ar, .* Received: languages=sw"):
        manifest.select(["sw", "en"])
    manifest.check_vocabulary(tokenizer.fingerprint)
    with pytest.raises(ValueError, match="built with another vocabulary"):
        manifest.check_vocabulary("0" * 64)
