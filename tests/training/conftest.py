"""Two logical CPU devices stand in for two GPUs; they must be set before TensorFlow starts."""

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
