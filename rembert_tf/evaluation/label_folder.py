"""The gold labels in a folder: XTREME's label files, its data files, or data sets as published."""

from collections.abc import Mapping

from rembert_tf.evaluation import accuracy, answer_files, files, layout, published_labels
from rembert_tf.evaluation.tasks import Task

Paths = tuple[str, ...]


class LabelFolder:
    """Finds and reads the labels of one split, each once.

    A language may have files in several places, such as XTREME's test file without labels and beside it
    the download that it was made from. The first place with labels counts: `<task>/<split>-<language>`
    as in XTREME, then those of `pipelines/xtreme.py`.

    Example:
        >>> from rembert_tf.evaluation.tasks import TASKS
        >>> LabelFolder("no/such/folder", "test").find(TASKS["xnli"])
        {}
    """

    def __init__(self, path: str, split: str):
        """Names the folder and the split, `test` or `dev`; nothing is read."""
        self.path, self.split = path, split
        self._found: dict[str, dict[str, list[Paths]]] = {}
        self._read: dict[tuple[str, str], files.Source] = {}

    def find(self, task: Task) -> Mapping[str, list[Paths]]:
        """Returns language → the places of files that may hold its labels, as a list of paths each."""
        if task.name not in self._found:
            in_xtremes_layout = layout.find_predictions(self.path, task, self.split)
            found = {language: [(path,)] for language, path in in_xtremes_layout.items()}
            for language, paths in published_labels.find(self.path, task, self.split):
                found.setdefault(language, []).append(paths)
            self._found[task.name] = found
        return self._found[task.name]

    def read(self, task: Task, language: str) -> files.Source:
        """Returns the label file of a language that `find` has, or the same made from published files.

        Raises:
            files.NoLabelsError: none of the files tells labels; the message names file and line, and
                the places where labels were looked for.
            ValueError: a file is not as it must be; the message names file and line.
        """
        key = task.name, language
        if key not in self._read:
            self._read[key] = self._first_with_labels(task, language)
        return self._read[key]

    def _first_with_labels(self, task: Task, language: str) -> files.Source:
        in_xtremes_layout = (layout.prediction_path(self.path, task, self.split, language),)
        refusals = []
        for paths in self.find(task)[language]:
            try:
                if paths == in_xtremes_layout:
                    _require_labels(task, *paths)
                    return paths[0]
                return published_labels.read(task, paths, language)
            except files.NoLabelsError as error:
                refusals.append(f"{str(error).removesuffix('.')}.")
        raise files.NoLabelsError(f"{' '.join(refusals)} {self.places(task, language)}")

    def places(self, task: Task, language: str = "") -> str:
        """Returns in a sentence, for messages, where labels of a task may lie."""
        names = [f"{task.name}/{self.split}-<language>.{task.suffix}"]
        for pattern in published_labels.patterns(task, self.split):
            path, _, only = pattern.partition("#")
            if only in ("", language):
                names.append(path.format(language="<language>", language3="<language>"))
        return f"Labels of {task.name} may lie in {self.path} as {', '.join(names)}."


def _require_labels(task: Task, path: str) -> None:
    """Raises `NoLabelsError` for a file of which most lines end in no label of the task."""
    if task.kind == "question_answering":
        answer_files.read_gold_answers(path)
    if not task.labels:
        return
    lines = [
        (number, files.last_column(line))
        for number, line in enumerate(files.read_lines(path), start=1)
        if line.strip()
    ]
    others = [
        (number, label)
        for number, label in lines
        if task.aliases.get(label, label) not in task.labels
    ]
    if 2 * len(others) > len(lines):
        raise files.NoLabelsError(accuracy.unknown_label_message(path, *others[0], task.labels))
