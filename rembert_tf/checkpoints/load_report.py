"""What happened to each tensor when weights were loaded."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadReport:
    """Which variables came from the file, which tensors were left over, what had to be made.

    Attributes:
        file: The file that was read.
        loaded: Paths of the variables that came from it.
        skipped: Keys of its tensors that the model has no use for.
        newly_made: Paths and shapes of the variables it lacks, which were drawn afresh.
        notes: Decisions worth knowing, a sentence each.
    """

    file: str
    loaded: tuple[str, ...]
    skipped: tuple[str, ...]
    newly_made: tuple[tuple[str, tuple[int, ...]], ...]
    notes: tuple[str, ...] = ()

    def __str__(self):
        made = [f"{path} {list(shape)}" for path, shape in self.newly_made]
        lines = [
            f"{self.file}: loaded {len(self.loaded)} variables",
            f"  tensors skipped: {_shorten(self.skipped)}",
            f"  variables newly made: {_shorten(made)}",
            *(f"  {note}" for note in self.notes),
        ]
        if any(path.startswith("masked_lm_head/") for path, _ in self.newly_made):
            lines.append("  the masked-LM head is random: it gives no scores before it is trained")
        return "\n".join(lines)


def _shorten(names, limit=8):
    if not names:
        return "none"
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{len(names)} ({', '.join(names[:limit])}{rest})"
