"""What happened to each tensor when weights were loaded."""

import dataclasses

# The name of a tensor and its shape, with the axes that our variable has.
Entry = tuple[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadReport:
    """Which variables came from the file, which tensors were left over, what had to be made.

    Attributes:
        file: The file that was read.
        loaded: Paths and shapes of the variables that came from it.
        skipped: Keys and shapes of its tensors that the model has no use for.
        newly_made: Paths and shapes of the variables it lacks, which were drawn afresh.
        untrained: Paths of loaded variables that were random when they were saved, and still are.
        notes: Decisions worth knowing, a sentence each.
    """

    file: str
    loaded: tuple[Entry, ...]
    skipped: tuple[Entry, ...]
    newly_made: tuple[Entry, ...]
    untrained: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self):
        lines = [
            f"{self.file}: loaded {len(self.loaded)} variables",
            f"  tensors skipped: {_shorten(self.skipped)}",
            f"  variables newly made: {_shorten(self.newly_made)}",
        ]
        shapes = dict(self.loaded)
        if self.untrained:
            saved = _shorten([(path, shapes[path]) for path in self.untrained])
            lines.append(f"  saved before they were trained: {saved}")
        lines += (f"  {note}" for note in self.notes)
        random = (*(path for path, _ in self.newly_made), *self.untrained)
        if any(path.startswith("masked_lm_head/") for path in random):
            lines.append("  the masked-LM head is random: it gives no scores before it is trained")
        return "\n".join(lines)


def _shorten(entries, limit=8):
    if not entries:
        return "none"
    listed = ", ".join(f"{name} {list(shape)}" for name, shape in entries[:limit])
    rest = f" and {len(entries) - limit} more" if len(entries) > limit else ""
    return f"{len(entries)} ({listed}{rest})"
