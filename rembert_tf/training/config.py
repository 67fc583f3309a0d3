"""Configurations of training runs; each field becomes a flag of a binary."""

import dataclasses
import re
from typing import Literal

from rembert_tf.pipelines import xtreme
from rembert_tf.pipelines.finetuning_config import LengthOfRunConfig
from rembert_tf.training.retrieval_config import RetrievalConfig


def _field(default, help_text):
    return dataclasses.field(default=default, metadata={"help": help_text})


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Optimizer, linear warm-up, polynomial decay. Defaults: Chung et al. 2021, Table 14."""

    optimizer: Literal["adamw", "lamb"] = _field(
        "adamw", "`adamw`, or for large batches `lamb` (You et al. 2020)."
    )
    learning_rate: float = _field(2e-4, "Highest learning rate, reached after the warm-up.")
    end_learning_rate: float = _field(0.0, "Learning rate after the last step.")
    decay_power: float = _field(
        1.0, "Exponent of the decay after the warm-up: 1 is a straight line, 0 no decay at all."
    )
    warmup_steps: int = _field(
        -1, "Steps of linear warm-up; -1 means `warmup_proportion` of all steps."
    )
    warmup_proportion: float = _field(
        0.1, "Share of all steps that is warm-up, where `warmup_steps` is -1."
    )
    weight_decay: float = _field(0.01, "Decoupled weight decay, times the learning rate.")
    exclude_from_weight_decay: tuple[str, ...] = _field(
        ("bias", "gamma", "beta"), "Own names of variables that are not decayed."
    )
    beta_1: float = _field(0.9, "Adam's decay of the first moment.")
    beta_2: float = _field(0.999, "Adam's decay of the second moment.")
    epsilon: float = _field(1e-6, "Adam's epsilon.")
    global_clip_norm: float = _field(
        1.0, "Limit of the norm of the whole gradient, summed over all replicas; 0 for none."
    )

    def __post_init__(self):
        """Checks the values."""
        require(self.learning_rate > 0, "`learning_rate` must be positive", self, "learning_rate")
        require(
            0 <= self.warmup_proportion < 1,
            "`warmup_proportion` must be at least 0 and below 1",
            self,
            "warmup_proportion",
        )
        for name in ("end_learning_rate", "decay_power", "weight_decay", "global_clip_norm"):
            require(getattr(self, name) >= 0, f"`{name}` must not be negative", self, name)

    def resolved_warmup_steps(self, total_steps: int) -> int:
        """Returns the number of warm-up steps of a run of `total_steps`."""
        if self.warmup_steps >= 0:
            return self.warmup_steps
        return int(self.warmup_proportion * total_steps)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistributionConfig:
    """On what a run computes, and in which precision."""

    distribution: Literal["one_device", "mirrored", "multi_worker", "tpu"] = _field(
        "one_device",
        "`one_device`; `mirrored` over all local GPUs (or CPU replicas); `multi_worker` over the processes that "
        "TF_CONFIG names; `tpu`.",
    )
    cpu_replicas: int = _field(
        0, "With `mirrored`: so many logical CPU devices stand in for GPUs; 0 for the real devices."
    )
    tpu_address: str = _field(
        "local", "With `tpu`: the TPU's name or grpc:// address; `local` on a TPU's own machine."
    )
    gradient_accumulation_steps: int = _field(
        1,
        "Micro-batches into which each replica cuts its rows of a batch: less memory, same weights.",
    )
    dtype: Literal["float32", "mixed_bfloat16", "mixed_float16"] = _field(
        "float32",
        "Keras dtype policy: the mixed ones keep weights and updates in float32, `mixed_float16` scales the loss.",
    )
    jit_compile: bool = _field(
        False, "Compile forward and backward pass with XLA (measure: on CPU it pays seldom)."
    )
    remat: bool = _field(
        False,
        "Keep only the input of each Transformer layer and compute the rest anew in the backward pass: less memory, "
        "more time, same weights.",
    )

    def __post_init__(self):
        """Checks the values."""
        require(
            self.gradient_accumulation_steps > 0,
            "`gradient_accumulation_steps` must be at least 1",
            self,
            "gradient_accumulation_steps",
        )
        require(
            self.cpu_replicas == 0 or self.distribution == "mirrored",
            "`cpu_replicas` stand in for the GPUs of `distribution` mirrored",
            self,
            "cpu_replicas",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Where a run writes, and how often."""

    model_dir: str = dataclasses.field(
        metadata={"help": "Folder for all that the run writes; made if needed."}
    )
    resume: bool = _field(
        False, "Go on with the run in `model_dir` from its last checkpoint (a new run otherwise)."
    )
    log_every: int = _field(50, "Steps between two lines of progress.")
    checkpoint_every: int = _field(500, "Steps between two checkpoints.")
    evaluate_every: int = _field(500, "Steps between two evaluations.")
    keep_checkpoints: int = _field(2, "How many of the last checkpoints are kept.")
    keep_best: bool = _field(
        False,
        "Keep the checkpoint with the best held-out loss (dev score), too; pre-training also publishes that model in "
        "<model_dir>/best_model.",
    )
    deterministic: bool = _field(
        False,
        "Use TensorFlow's deterministic operations: runs with the same flags, machine and number of threads are equal "
        "bit for bit.",
    )
    profile_steps: str = _field(
        "", "Profile these steps for TensorBoard: first and last one, such as 100,110."
    )

    def __post_init__(self):
        """Checks the values."""
        for name in ("log_every", "checkpoint_every", "evaluate_every", "keep_checkpoints"):
            require(getattr(self, name) > 0, f"`{name}` must be positive", self, name)
        require(
            self.evaluate_every % self.log_every == 0,
            f"`evaluate_every` must be a multiple of `log_every` {self.log_every}: an evaluation starts the training "
            "metrics anew",
            self,
            "evaluate_every",
        )
        if self.profile_steps:
            require(
                re.fullmatch(r"[1-9]\d*,[1-9]\d*", self.profile_steps) is not None
                and self.profile_range[0] <= self.profile_range[1],
                "`profile_steps` must be two step numbers from 1 on, FIRST,LAST",
                self,
                "profile_steps",
            )

    @property
    def profile_range(self) -> tuple[int, int] | None:
        """First and last step to profile, or None."""
        if not self.profile_steps:
            return None
        first, last = self.profile_steps.split(",")
        return int(first), int(last)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingConfig:
    """The start and length of a masked-LM pre-training run."""

    model_config: str = _field(
        "",
        "A named size (`python -m rembert_tf.config` lists them) or a config.json, for random "
        "weights; its vocab_size is taken from the tokenizer.",
    )
    init_checkpoint: str = _field(
        "",
        "In place of `model_config`: the model folder (or Hub id) whose training goes on; a new "
        "masked-LM head is made if it has none.",
    )
    initial_attention: Literal["random", "neighbours"] = _field(
        "random",
        "With `model_config`: `neighbours` lets the heads of the first layer start by looking at the pieces beside, "
        "so that a small model leaves the unigrams sooner (docs/a_run_that_learns.md).",
    )
    tokenizer: str = _field(
        "", "Vocabulary: a sentencepiece.model or its folder; default: that of `init_checkpoint`."
    )
    steps: int = _field(3000, "Training steps (batches).")
    evaluation_sequences: int = _field(64, "Held-out sequences evaluated, for each language.")

    def __post_init__(self):
        """Checks the values."""
        require(
            bool(self.model_config) != bool(self.init_checkpoint),
            "Give either `model_config` (random weights) or `init_checkpoint`",
            self,
            "model_config",
        )
        require(
            not self.model_config or bool(self.tokenizer),
            "`model_config` needs a `tokenizer`",
            self,
            "tokenizer",
        )
        require(
            self.initial_attention == "random" or not self.init_checkpoint,
            "`initial_attention` is for fresh weights, not for those of `init_checkpoint`",
            self,
            "initial_attention",
        )
        require(self.steps > 0, "`steps` must be positive", self, "steps")
        require(
            self.evaluation_sequences >= 0,
            "`evaluation_sequences` must not be negative",
            self,
            "evaluation_sequences",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningConfig:
    """The start and length of a fine-tuning run."""

    init_checkpoint: str = _field(
        "",
        "Model folder to start from, as `rembert-pretrain` leaves in <model_dir>/model, or a Hub id.",
    )
    model_config: str = _field(
        "", "In place of `init_checkpoint`: a random encoder of this named size or config.json."
    )
    tokenizer: str = _field(
        "", "Vocabulary: a sentencepiece.model or its folder; default: that of `init_checkpoint`."
    )
    epochs: float = _field(3.0, "Passes over the training data (3: Chung et al. 2021, Table 15).")
    num_seeds: int = _field(
        1,
        "Runs with the seeds `seed`, `seed` + 1, ... in <model_dir>/seed_1, seed_2, ..., and their mean dev score "
        "in summary.json; rembert-predict takes <model_dir> and predicts with all of them.",
    )
    num_hidden_layers: int | None = _field(
        None,
        "Layers of `init_checkpoint` to keep, counted from the input (Chung et al. 2021, Table 5); default: all.",
    )
    freeze_input_embedding: bool = _field(
        False,
        "Leave the table of the pieces as it is, so that its width adds nothing to what is trained "
        "(Chung et al. 2021, footnote 4).",
    )
    freeze_layers: int = _field(
        0, "Leave the embeddings and so many layers, counted from the input, as they are."
    )
    freeze_encoder: bool = _field(False, "Train the new head only.")
    lora_rank: int = _field(
        0,
        "Train, in place of the encoder, additions of this rank to its query and value kernels (LoRA, Hu et al. 2022).",
    )
    layer_decay: float = _field(
        1.0, "Factor of the learning rate from one layer to the one below it; 1 is off."
    )

    def __post_init__(self):
        """Checks the values."""
        require(self.epochs > 0, "`epochs` must be positive", self, "epochs")
        require(
            0 < self.layer_decay <= 1,
            "`layer_decay` must be above 0 and at most 1",
            self,
            "layer_decay",
        )
        require(self.num_seeds > 0, "`num_seeds` must be at least 1", self, "num_seeds")
        for name in ("freeze_layers", "lora_rank"):
            require(getattr(self, name) >= 0, f"`{name}` must not be negative", self, name)
        require(
            not (self.lora_rank and self.freeze_encoder),
            "`lora_rank` trains in the encoder, which `freeze_encoder` forbids",
            self,
            "lora_rank",
        )
        require(
            bool(self.init_checkpoint) != bool(self.model_config),
            "Give either `init_checkpoint` or `model_config` (a random encoder)",
            self,
            "init_checkpoint",
        )
        require(
            self.num_hidden_layers is None or bool(self.init_checkpoint),
            "`num_hidden_layers` keeps layers of an `init_checkpoint`",
            self,
            "num_hidden_layers",
        )
        require(
            not self.model_config or bool(self.tokenizer),
            "`model_config` needs a `tokenizer`",
            self,
            "tokenizer",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictionConfig(LengthOfRunConfig, RetrievalConfig):
    """What `rembert-predict` predicts, with what, and where it writes."""

    task: str = dataclasses.field(metadata={"help": f"Task of XTREME: {', '.join(xtreme.TASKS)}."})
    data_dir: str = _field(
        "",
        "Folder that holds one folder a task, as XTREME's script leaves it, or raw downloads: all files of `split` "
        "are predicted.",
    )
    output_dir: str = _field(
        "", "With `data_dir`: where <task>/<split>-<language>.tsv are written."
    )
    input: str = _field(
        "",
        "In place of `data_dir`: one file, or - for standard input, of plain text: one line, one prediction.",
    )
    input_format: Literal["text", "task"] = _field(
        "text",
        "What `input` is: plain text (a sentence; a pair with a tab between; a question, a tab, its text), or a file "
        "in any of the formats of `task`.",
    )
    output: str = _field("-", "With `input`: the file to write; - is standard output.")
    model: str = _field(
        "",
        "Fine-tuned model folder, <model_dir>/model of `rembert-finetune`, or a Hub id; or <model_dir> of several "
        "seeds, which predict one after the other, into <output_dir>/seed_1, seed_2, ...",
    )
    saved_model: str = _field(
        "",
        "In place of `model`: an export, <output_dir> of `rembert-export`, with its own lengths.",
    )
    baseline: Literal["", "most_frequent_tag", "most_frequent_tag_of_word", "majority_class"] = (
        _field("", "In place of `model`: predict what this baseline learns from the train file.")
    )
    train_language: str = _field("en", "Language whose train file `baseline` learns from.")
    split: Literal["test", "dev", "train"] = _field("test", "Which files to predict.")
    languages: tuple[str, ...] = _field((), "Languages to predict; default: all with a file.")
    language: str = _field("", "With `input`: code of its language, for formats that depend on it.")
    labels: Literal["task", "model"] = _field(
        "task",
        "Whose labels count with `data_dir`: `model` lets a model have others than the task.",
    )
    n_best: bool = _field(
        False,
        "Questions: also write the `n_best_size` best answers to each, with their places, logits and probabilities, to "
        "<split>-<language>.n_best.json.",
    )
    batch_size: int = _field(64, "Sequences in a batch.")
    resume: bool = _field(False, "Leave out the languages that this model has predicted already.")

    def __post_init__(self):
        """Checks the values."""
        LengthOfRunConfig.__post_init__(self)
        RetrievalConfig.__post_init__(self)
        require(
            bool(self.model or self.saved_model) != bool(self.baseline),
            "Give either `model` or `baseline`",
            self,
            "model",
        )
        require(
            not (self.model and self.saved_model),
            "Give `model` or `saved_model`, not both",
            self,
            "saved_model",
        )
        require(
            not self.saved_model or xtreme.get_task(self.task).kind != "retrieval",
            f"{self.task} compares vectors of a `model`, not of an export",
            self,
            "saved_model",
        )
        require(
            bool(self.data_dir) != bool(self.input),
            "Give either `data_dir` or `input`",
            self,
            "data_dir",
        )
        require(
            bool(self.data_dir) == bool(self.output_dir),
            "`output_dir` belongs to `data_dir`, `output` to `input`",
            self,
            "output_dir",
        )
        require(
            not (self.baseline and self.input), "`baseline` needs a `data_dir`", self, "baseline"
        )
        require(
            not self.input or xtreme.get_task(self.task).kind != "retrieval",
            f"{self.task} compares two files: give `data_dir` in place of `input`",
            self,
            "input",
        )
        require(
            self.input_format == "text" or self.output != "-",
            "`output` must be a file where `input_format` is task",
            self,
            "output",
        )
        require(
            not self.n_best
            or (
                bool(self.model and self.data_dir)
                and xtreme.get_task(self.task).kind == "question_answering"
            ),
            "`n_best` needs a `model`, a `data_dir` and a task of questions",
            self,
            "n_best",
        )
        require(self.batch_size > 0, "`batch_size` must be positive", self, "batch_size")


def check_sequence_length(max_seq_length: int, model_config) -> None:
    """Raises `ValueError` if sequences may be longer than the model's table of positions."""
    if max_seq_length > model_config.max_position_embeddings:
        raise ValueError(
            "`max_seq_length` must not exceed the model's max_position_embeddings "
            f"{model_config.max_position_embeddings}. Received: max_seq_length={max_seq_length}"
        )


def require(condition: bool, rule: str, config, name: str) -> None:
    """Raises `ValueError` with the rule and the received value, unless `condition` holds."""
    if not condition:
        raise ValueError(f"{rule}. Received: {name}={getattr(config, name)!r}")
