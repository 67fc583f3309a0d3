"""The output embedding: the table that scores every piece of the vocabulary.

A language model looks pieces up twice: at the input, where an id picks a row, and at the output,
where a vector is compared with all rows. Two papers ask whether that is one table or two.

* Press & Wolf (2017) make it one. The output table of a language model is a good embedding too, so
  let the input use it: fewer parameters, lower perplexity. That is `tied=True`.
* Chung et al. (2021) take the tables apart again, for encoders that are fine-tuned later. Then the
  output table is thrown away after pre-training, so its width costs nothing where it counts: make
  the input narrow (256), the output wide (1,664), and spend what is saved on layers. A wide output
  table also keeps the last layers general, since the table can do the specializing.

Both are this one layer. It holds its own table, of any width, or somebody else's.
"""

import keras
from keras import ops

from rembert_tf.layers.initializers import truncated_normal


@keras.saving.register_keras_serializable(package="rembert_tf")
class OutputEmbedding(keras.layers.Layer):
    """Scores every piece of the vocabulary: the product with each row of a table, plus a bias.

    The table is `[V, E_out]`, the layout of an input table and of the published checkpoints.

    A tied layer owns no table. It is handed the input table by `tie_to`, and looks at that one
    variable, which stays the property of the input embedding: it is counted, saved and optimized
    once, and its gradient is the sum of both uses. The bias is its own in either case.

    Args:
        vocab_size: Number of pieces, `V`.
        width: Width of the table, `E_out`.
        tied: Whether the table is that of the input embedding.
        use_bias: Whether each piece has a bias.
        initializer_range: Standard deviation of a fresh table.

    Example:
        >>> embeddings = Embeddings(vocab_size=100, width=8)
        >>> embeddings.build()
        >>> output = OutputEmbedding(vocab_size=100, width=8, tied=True)
        >>> output.tie_to(embeddings.word_embeddings)
        >>> output(np.ones((5, 8))).shape
        TensorShape([5, 100])
    """

    def __init__(
        self, vocab_size, width, tied=False, use_bias=True, initializer_range=0.02, **kwargs
    ):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.width = width
        self.tied = tied
        self.use_bias = use_bias
        self.initializer_range = initializer_range
        self._find_tied_table = None

    def tie_to(self, table):
        """Takes the input embedding's table as this layer's table.

        Args:
            table: A Keras variable, float [V, E_out].

        Raises:
            ValueError: If the layer is not tied, or the table has another shape.
        """
        if not self.tied:
            raise ValueError("`tie_to` needs a layer made with `tied=True`. Received: tied=False")
        if tuple(table.shape) != (self.vocab_size, self.width):
            raise ValueError(
                "`table` must have one row a piece and the width of this layer. Received: "
                f"shape {tuple(table.shape)}, vocab_size={self.vocab_size}, width={self.width}"
            )
        # Behind a function, since Keras would take an attribute for a variable of this layer.
        self._find_tied_table = lambda: table

    def build(self, input_shape=None):
        """Makes the table, unless it is tied, and the bias."""
        if not self.tied:
            self.own_table = self.add_weight(
                name="table",
                shape=(self.vocab_size, self.width),
                initializer=truncated_normal(self.initializer_range),
                autocast=False,
            )
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=(self.vocab_size,), initializer="zeros")

    @property
    def table(self):
        """The variable `[V, E_out]`: this layer's own, or the input table it is tied to."""
        if not self.tied:
            return self.own_table
        if self._find_tied_table is None:
            raise ValueError("a tied `OutputEmbedding` has no table before `tie_to` is called")
        return self._find_tied_table()

    def call(self, inputs):
        """Scores.

        Args:
            inputs: Vectors, float [..., E_out].

        Returns:
            Logits, float [..., V].
        """
        rows = ops.reshape(inputs, (-1, self.width))
        logits = _products_with_rows(rows, ops.cast(self.table, self.compute_dtype))
        if self.use_bias:
            logits = ops.add(logits, self.bias)
        return ops.reshape(logits, (*ops.shape(inputs)[:-1], self.vocab_size))

    def compute_output_shape(self, input_shape):
        """Returns the input's shape with `V` in place of its last axis."""
        return (*input_shape[:-1], self.vocab_size)

    def get_config(self):
        """Returns the constructor's arguments; whoever loads a tied layer ties it again."""
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "width": self.width,
            "tied": self.tied,
            "use_bias": self.use_bias,
            "initializer_range": self.initializer_range,
        }


def _products_with_rows(vectors, table):
    """Multiplies vectors with each row of a table, and copies no transposed table to do it.

    TensorFlow has one operation for that. In graphs it folds `ops.transpose` into a product, but not when called
    eagerly, and never the transposition of a product, which the gradient of the table would be. The compilers of other
    backends fold both.

    Args:
        vectors: float [R, E_out].
        table: float [V, E_out].

    Returns:
        float [R, V].
    """
    if keras.backend.backend() != "tensorflow":
        return ops.matmul(vectors, ops.transpose(table))
    import tensorflow as tf

    return tf.matmul(vectors, table, transpose_b=True)
