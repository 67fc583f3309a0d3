import hashlib

import numpy as np

from rembert_tf.pipelines.duplicates import SeenHashes, hashes


def test_only_the_first_of_equal_hashes_is_first():
    random = np.random.default_rng(0)
    seen, known = SeenHashes(), set()
    for size in (1, 0, 500, 3, 3, 40, 1000, 7, 2000):
        batch = random.integers(0, 2000, size, dtype=np.uint64)
        wanted = [value not in known and not known.add(value) for value in batch.tolist()]
        assert seen.add(batch).tolist() == wanted
    assert sum(map(len, seen._runs)) == len(known)  # 8 bytes each
    assert len(seen._runs) <= 1 + np.log2(len(known))


def test_hashes_are_those_of_the_text():
    found = hashes(["a", "b", "a", "", "é"])
    assert found.dtype == np.uint64 and len(found) == 5
    assert found[0] == found[2] and len(set(found.tolist())) == 4
    assert hashes([]).tolist() == []
    digest = hashlib.blake2b(b"a", digest_size=8).digest()  # none that differs between processes
    assert found[0] == int.from_bytes(digest, "little")
