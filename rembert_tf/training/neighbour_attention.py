"""Fresh attention heads that look at neighbours, so that a small masked LM leaves the unigrams soon.

With weights drawn at random, every head of a fresh encoder averages over the whole sequence. A masked LM then learns
for thousands of steps little more than which language it sees and how frequent its pieces are: what it needs first, the
pieces beside the mask, it can use only once some head tells places apart. So the heads are told at the start:

* the table of positions becomes sinusoids (Vaswani et al. 2017, 3.5) in place of random numbers;
* head h of the first layer gets query and key kernels whose scores are highest between positions i and i + o_h, for the
  offsets -1, 1, -2, 2 and so on: Q K^T is the best approximation, of the head's rank, of the sum over i of
  x_i x_(i + o)^T, where x_i is what position i adds to the hidden states.

Only the values of fresh weights change; architecture, checkpoints and training stay those of RemBERT. That attention
should start from a structure and not from noise is the idea of "Mimetic initialization" (Trockman and Kolter 2023);
this structure is ours. `docs/a_run_that_learns.md` measures it.
"""

import keras
import numpy as np

# The longest wave has this times 2 pi positions. With the 10,000 of Vaswani et al., near positions look alike.
_LONGEST_WAVE = 100.0


def look_at_neighbours(
    encoder: keras.Model, max_seq_length: int, *, sharpness: float = 4.0
) -> None:
    """Overwrites the positions and the first layer's query and key kernels of a fresh encoder.

    Args:
        encoder: a freshly made `RemBertEncoder`.
        max_seq_length: length of the training sequences.
        sharpness: how far the score between i and i + o is above the mean score of i, on average, in nats.

    Raises:
        ValueError: a sequence is too short for the offsets of the heads.
    """
    attention = encoder.transformer_layers[0].attention
    offsets = [(head // 2 + 1) * (1 if head % 2 else -1) for head in range(attention.num_heads)]
    shortest = 2 * max(map(abs, offsets))
    if max_seq_length < shortest:
        raise ValueError(
            f"`max_seq_length` must be at least {shortest} for {len(offsets)} heads that look at neighbours. "
            f"Received: max_seq_length={max_seq_length}"
        )
    table = encoder.embeddings.position_embeddings
    table.assign(_sinusoids(*table.shape) * encoder.config.initializer_range)
    states = _states(encoder, max_seq_length)
    kernels = [
        _kernels(states, offset, attention.hidden_size // attention.num_heads, sharpness)
        for offset in offsets
    ]
    for dense, parts in zip(
        (attention.query, attention.key), zip(*kernels, strict=True), strict=True
    ):
        dense.kernel.assign(np.concatenate(parts, axis=1))


def _sinusoids(positions: int, width: int) -> np.ndarray:
    """Returns sines in the first half of the columns and cosines in the second, float64 [positions, width]."""
    waves = _LONGEST_WAVE ** (np.arange(0, width, 2) / width)
    angles = np.arange(positions)[:, None] / waves
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, :width]


def _states(encoder, length: int) -> np.ndarray:
    """Returns what the first layer sees where one piece stands everywhere, float64 [length, D]."""
    states = encoder.embeddings(np.zeros((1, length), np.int32))
    if encoder.input_projection is not None:
        states = encoder.input_projection(states)
    return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(states, "float32"))[0], np.float64)


def _kernels(states, offset: int, rank: int, sharpness: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns query and key kernel of one head, float64 [D, rank] each."""
    places = states - states.mean(axis=0)
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    here = np.arange(max(0, -offset), len(states) - max(0, offset))
    left, strength, right = np.linalg.svd(places[here].T @ places[here + offset])
    query = left[:, :rank] * np.sqrt(strength[:rank])
    key = right[:rank].T * np.sqrt(strength[:rank])
    scores = (states @ query) @ (states @ key).T / np.sqrt(rank)
    above_mean = np.mean(scores[here, here + offset] - scores[here].mean(axis=1))
    scale = np.sqrt(sharpness / above_mean)
    return query * scale, key * scale
