"""When a run is done: after so many applied updates, the number that the learning rate follows, too."""

import keras


class StopAfterUpdates(keras.callbacks.Callback):
    """Ends `fit` when the optimizer has applied `updates` updates; steps that it skipped (float16) do not count."""

    def __init__(self, updates: int):
        super().__init__()
        self._updates = updates

    def on_train_batch_end(self, batch, logs=None):
        """Looks at the optimizer's counter."""
        if int(self.model.optimizer.iterations.numpy()) >= self._updates:
            self.model.stop_training = True
