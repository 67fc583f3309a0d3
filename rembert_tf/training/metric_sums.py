"""The training metrics between two lines of the log, so that a resumed run's next line is the unbroken run's."""

import keras
import tensorflow as tf


class MetricSums:
    """What a trainer's metrics have summed up since they were last reset, as a variable of a training checkpoint.

    Several replicas give their common sum and take equal shares of it back: the means are the same, to the rounding of
    float32; with one replica bit for bit.

    Args:
        trainer: a compiled trainer; its metrics need not be built before the first batch.

    Attributes:
        variable: float64 `[N]`, one number for each variable of the metrics; empty before the first `note`.
    """

    def __init__(self, trainer: keras.Model):
        self._trainer = trainer
        self.variable = tf.Variable(
            tf.zeros([0], tf.float64), shape=[None], trainable=False, name="metric_sums"
        )

    def note(self) -> None:
        """Reads the sums; with several workers, all of them must call it."""
        self.variable.assign([float(variable.numpy()) for variable in self._variables()])

    def give_back(self) -> None:
        """Sets the metrics to what was noted, or restored, last."""
        values = self.variable.numpy()
        variables = self._variables()
        if len(values) == len(variables):  # else nothing was noted, or by a run with other metrics
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)

    def _variables(self) -> list[keras.Variable]:
        return [variable for metric in self._trainer.metrics for variable in metric.variables]
