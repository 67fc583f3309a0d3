"""Learning-rate schedule: linear warm-up, then polynomial decay."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="rembert_tf")
class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from 0 to `peak`, then polynomial decay to `end` at `total_steps`.

    The update with number s (counted from 0) uses `peak * (s + 1) / warmup_steps` while s < warmup_steps, so that the
    first update moves already, and `end + (peak - end) * ((total_steps - s) / (total_steps - warmup_steps)) ** power`
    afterwards. 15,000 warm-up steps, peak 2e-4: Chung et al. 2021, Table 14 (the curve after the warm-up is not stated
    there; power 1 is BERT's).

    Args:
        peak: highest learning rate.
        warmup_steps: updates until `peak`; 0 for none.
        total_steps: updates until `end`.
        end: learning rate at and after `total_steps`.
        power: exponent of the decay; 1 is a straight line, 0 keeps `peak` for ever.

    Raises:
        ValueError: `warmup_steps` is negative or not below `total_steps`, or `power` is negative.
    """

    def __init__(self, peak, warmup_steps, total_steps, end=0.0, power=1.0):
        if not 0 <= warmup_steps < total_steps:
            raise ValueError(
                "`warmup_steps` must be at least 0 and below `total_steps`. "
                f"Received: warmup_steps={warmup_steps}, total_steps={total_steps}"
            )
        if power < 0:
            raise ValueError(f"`power` must not be negative. Received: power={power}")
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.end = end
        self.power = power

    def __call__(self, step):
        """Returns the float32 learning rate of update `step` (scalar, counted from 0)."""
        step = ops.cast(step, "float32")
        warm = self.peak * (step + 1.0) / max(self.warmup_steps, 1)
        left = (self.total_steps - step) / (self.total_steps - self.warmup_steps)
        decayed = self.end + (self.peak - self.end) * ops.clip(left, 0.0, 1.0) ** self.power
        return ops.where(step < self.warmup_steps, warm, decayed)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "end": self.end,
            "power": self.power,
        }
