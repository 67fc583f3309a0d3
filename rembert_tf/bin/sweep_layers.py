r"""Says which layer of an encoder knows translations best: nearest neighbours, layer by layer, with a plot.

Inputs: model folders (encoders, masked LMs, fine-tuned models: their encoder is taken), and parallel sentences: two
files line by line, or Tatoeba as XTREME or LASER leave it. Outputs in --output_dir: layers.json (percent right of each
model, language and layer) and layers.png. --procedure=figure2 is that of Chung et al. 2021, Figure 2: the English
vectors are moved by the mean difference of the very pairs that are scored. --procedure=tatoeba is XTREME's, whose score
at one layer is what `rembert-predict --task=tatoeba --layer=N` gives.

The recipes flags/recipes/layers_figure2.flags and layers_tatoeba.flags hold the settings of the two procedures. What
they choose, rembert-predict takes: --task=tatoeba --layer=N.

Tatoeba has test files only: who takes the layer that is best there has chosen it by test scores, so choose it by other
parallel files.

Examples:
  rembert-sweep-layers --models=trained=runs/lm/model --random_encoder --parallel_files=wmt.en,wmt.de \
      --output_dir=layers
  rembert-sweep-layers --flagfile=flags/recipes/layers_tatoeba.flags --models=google/rembert --data_dir=download \
      --label_folder=labels --output_dir=layers_tatoeba
"""

from rembert_tf.flags import binary, dataclass_flags
from rembert_tf.training.retrieval_config import LayerSweepConfig


def define_flags() -> None:
    """Defines a flag for each field of the configuration."""
    dataclass_flags.define_flags(LayerSweepConfig)


def main() -> None:
    """Reads the configuration and sweeps."""
    config = dataclass_flags.from_flags(LayerSweepConfig)
    from rembert_tf.training.layer_sweep import sweep_layers

    sweep_layers(config)


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
