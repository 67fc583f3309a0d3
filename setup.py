"""Package metadata of rembert_tf: everything pip needs to know stands here.

`pipelines` and `flags` would collide with other projects as global import names, so the two folders are
mapped into the package: they are imported as `rembert_tf.pipelines` and `rembert_tf.flags`.
"""

import pathlib

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).parent

FOLDER_OF_PACKAGE = {
    "rembert_tf": "rembert_tf",
    "rembert_tf.pipelines": "pipelines",
    "rembert_tf.flags": "flags",
}

PACKAGES = [
    name
    for package, folder in FOLDER_OF_PACKAGE.items()
    for name in [package, *(f"{package}.{sub}" for sub in find_packages(folder))]
]

SERVE = ["aiohttp>=3.9"]
ONNX = ["onnx>=1.23", "onnxruntime>=1.32", "tf2onnx>=1.17"]
TEST = ["pytest>=9", "pytest-xdist>=3.8", *SERVE, *ONNX]
HUGGING_FACE = ["huggingface_hub>=1"]
# Model Garden lives on Keras 2 (tf-keras): a peer to compare with, never a run-time requirement.
MODEL_GARDEN = ["tf-models-official>=2.20,<2.21", "tf-keras>=2.20,<2.21"]
# The other sides that tests and benchmarks compare with. transformers 4 comes beside them, by the Makefile.
ORACLES = [
    *TEST, *HUGGING_FACE, *MODEL_GARDEN, "jax>=0.10,<0.11", "torch>=2.13,<2.14", "transformers>=5",
]  # fmt: skip

setup(
    name="rembert_tf",
    version="0.1.0",
    description=(
        "RemBERT and tied or untied embeddings of any width for TensorFlow and Keras 3: "
        "pre-training, XTREME fine-tuning, SavedModel export."
    ),
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE", "pipelines/sample/LICENSE"],
    python_requires=">=3.11",
    packages=PACKAGES,
    package_dir=FOLDER_OF_PACKAGE,
    package_data={
        "rembert_tf.pipelines": ["sample/**/*"],
        "rembert_tf.flags": ["recipes/*.flags"],
    },
    install_requires=[
        "absl-py>=1.4",
        "fonttools>=4.60",
        "h5py>=3",
        "keras>=3.15,<3.16",
        "matplotlib>=3.9",
        "ml_dtypes>=0.5",
        "numpy>=2.1",
        "safetensors>=0.5",
        "sentencepiece>=0.2",
        "seqeval>=1.2.2",
        "tensorflow>=2.20,<2.21",
        "tensorflow-text==2.20.*",
        "tqdm>=4.66",
        "zstandard>=0.23",
    ],
    extras_require={
        "hf": HUGGING_FACE,
        "onnx": ONNX,
        "serve": SERVE,
        "modelgarden": MODEL_GARDEN,
        "test": TEST,
        "dev": [*TEST, "ruff>=0.17,<0.18", "build>=1.2", "setuptools>=77"],
        # Beam wants an older protobuf than sentencepiece 0.2.2 was made with.
        "beam": ["apache-beam>=2.77,<3", "sentencepiece>=0.2,<0.2.2"],
        "oracles": ORACLES,
        "benchmarks": [*ORACLES, "datasets>=5"],
    },
    entry_points={
        "console_scripts": [
            "rembert-train-tokenizer = rembert_tf.bin.train_tokenizer:run",
            "rembert-build-data = rembert_tf.bin.build_data:run",
            "rembert-inspect-data = rembert_tf.bin.inspect_data:run",
            "rembert-pretrain = rembert_tf.bin.pretrain:run",
            "rembert-finetune = rembert_tf.bin.finetune:run",
            "rembert-predict = rembert_tf.bin.predict:run",
            "rembert-convert = rembert_tf.bin.convert:run",
            "rembert-sweep-layers = rembert_tf.bin.sweep_layers:run",
            "rembert-make-labels = rembert_tf.bin.make_labels:run",
            "rembert-evaluate = rembert_tf.bin.evaluate:run",
            "rembert-export = rembert_tf.bin.export:run",
        ]
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
