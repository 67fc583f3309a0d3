"""What sequence and token classification share: an encoder and a classification head."""

from rembert_tf.layers.classification_head import ClassificationHead
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.pretrained_model import ENCODER_DROPOUTS, PretrainedModel


class ClassificationModel(PretrainedModel):
    """An encoder, and a head with one logit for each of `config.id2label`.

    Raises:
        ValueError: If `config.id2label` is empty.
    """

    dropouts = (*ENCODER_DROPOUTS, "classifier_dropout_prob")

    def __init__(self, config, *, add_pooler, name, **kwargs):
        super().__init__(config, name=name, **kwargs)
        if not config.id2label:
            raise ValueError("`config.id2label` must name the classes. Received: id2label=()")
        self.encoder = RemBertEncoder(
            config, add_pooler=add_pooler, dtype=self.dtype_policy, name="rembert"
        )
        self.classifier = ClassificationHead(
            len(config.id2label),
            config.hidden_size,
            dropout_rate=config.classifier_dropout_prob,
            layer_number=1 + 3 * config.num_hidden_layers,  # after the last Transformer layer's
            initializer_range=config.initializer_range,
            dtype=self.dtype_policy,
            name="classifier",
        )
        self.classifier.build((None, config.hidden_size))
        self.built = True

    def _classify(self, inputs, training, output_name):
        features = self.complete_features(inputs, training)
        outputs = self.encoder(features, training=training)
        keys = features.get("dropout_keys")
        return self.classifier(outputs[output_name], keys, training=training)
