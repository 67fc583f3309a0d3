"""Models of the Hugging Face Hub, through `huggingface_hub`: its cache, its login, its offline mode.

`HF_HOME`, `HF_TOKEN`, `HF_ENDPOINT` and `HF_HUB_OFFLINE` mean here what its documentation says.
"""

import os
import re

from rembert_tf.checkpoints.hugging_face_folder import WEIGHT_FILES
from rembert_tf.checkpoints.replaced_folder import check_not_interrupted

# Beside the weights.
_FILES = ("config.json", "sentencepiece.model", "README.md")
_MODEL_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def local_folder(path: str | os.PathLike, revision: str | None = None) -> str:
    """Returns the folder of a model, which is downloaded first if the model is on the Hub.

    What exists on disk always comes before a model of that name on the Hub. Only what is needed is
    downloaded, and only once: the configuration, the vocabulary, and one form of the weights.

    Args:
        path: A folder, the prefix of a TensorFlow checkpoint, or the id of a model on the Hub, such
            as "google/rembert". A `pathlib.Path` is never an id.
        revision: Branch, tag or commit on the Hub; default: its main branch.

    Returns:
        `path` itself if it exists, or else a folder in the cache.

    Raises:
        ConnectionError: If the Hub cannot be reached and the cache does not hold the model.
        FileNotFoundError: If there is neither such a folder nor such a model, or
            `huggingface_hub` is not installed.
        PermissionError: If the model is given only to some users.
        ValueError: If the model has no such `revision`, or one is given for a folder.

    Example:
        >>> import rembert_tf
        >>> folder = rembert_tf.local_folder(path)  # "google/rembert", or a folder
        >>> tokenizer = rembert_tf.RemBertTokenizer.from_file(folder)
        >>> model = rembert_tf.RemBertEncoder.from_pretrained(folder)
    """
    name = os.fspath(path)
    if os.path.exists(name) or os.path.exists(f"{name}.index"):
        if revision is not None:
            raise ValueError(
                f"`revision` is for models of the Hub, and {name} is on disk. "
                f"Received: revision={revision!r}"
            )
        return name
    check_not_interrupted(path)
    if not isinstance(path, str) or not _MODEL_ID.fullmatch(name):
        raise FileNotFoundError(f"`path` must be a folder that exists. Received: path={name!r}")
    return _download(name, revision)


def _download(model_id, revision):
    """Downloads a model's files with the first form of weights that it has."""
    commit = revision
    for file, shards in WEIGHT_FILES.items():
        folder = _snapshot(model_id, commit, [*_FILES, file, *shards])
        if os.path.exists(os.path.join(folder, file)):
            break
        commit = os.path.basename(folder)  # and that one, if the branch moves on meanwhile
    return folder


def _snapshot(model_id, revision, files):
    try:
        import huggingface_hub
        from huggingface_hub import constants, errors
    except ImportError:
        raise FileNotFoundError(
            "`path` must be a folder that exists, or the id of a model on the Hub, which needs "
            f"`pip install 'rembert_tf[hf]'`. Received: path={model_id!r}"
        ) from None
    no_folder = f"no folder {model_id!r} here, and"
    try:
        return huggingface_hub.snapshot_download(
            model_id, revision=revision, allow_patterns=files, library_name="rembert_tf"
        )
    except errors.HFValidationError:
        raise FileNotFoundError(
            f"`path` must be a folder that exists. Received: path={model_id!r}"
        ) from None
    except errors.GatedRepoError:
        raise PermissionError(
            f"{model_id}: given only to users whom its owner has accepted. Ask on "
            f"{constants.ENDPOINT}/{model_id}, then run `hf auth login` or set HF_TOKEN"
        ) from None
    except errors.RevisionNotFoundError:
        raise ValueError(
            f"`revision` must be a branch, tag or commit of {model_id}. "
            f"Received: revision={revision!r}"
        ) from None
    except errors.RepositoryNotFoundError:
        raise FileNotFoundError(
            f"{no_folder} {constants.ENDPOINT} has no such model, or shows it only to users who "
            "run `hf auth login` or set HF_TOKEN"
        ) from None
    except Exception as error:  # the classes of its HTTP client change with its version
        if constants.HF_HUB_OFFLINE:
            raise ConnectionError(
                f"{no_folder} HF_HUB_OFFLINE is set and the cache, {constants.HF_HUB_CACHE}, does "
                "not hold that model whole"
            ) from error
        raise ConnectionError(
            f"{no_folder} {constants.ENDPOINT} could not give it: "
            f"{' '.join(str(error).split())[:300]}"
        ) from error
