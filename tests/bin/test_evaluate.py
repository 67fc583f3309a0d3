import json
import subprocess
import sys

HEAVY = ("tensorflow", "keras", "tensorflow_text")


def run(code, *arguments):
    """Runs `code` in a fresh process with `arguments` as the command line's flags."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def binary(heavy):
    """Code that runs the binary and then prints which of the `heavy` modules were imported."""
    return (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('LOADED', [m for m in {heavy!r} if m in sys.modules]))\n"
        "from rembert_tf.bin import evaluate\n"
        "evaluate.run()\n"
    )


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def evaluate(folder, *flags):
    """Scores `predictions` by `labels`, both in a folder."""
    result = run(
        binary(HEAVY),
        f"--prediction_folder={folder}/predictions",
        f"--label_folder={folder}/labels",
        f"--output_file={folder}/official.json",
        f"--output_dir={folder}/report",
        *flags,
    )
    assert result.returncode == 0, result.stderr
    return result


def test_folders_in_scores_out_without_tensorflow(tmp_path):
    write(tmp_path / "labels/udpos/test-en.tsv", "a\tDET\nhorse\tNOUN\n\nran\tVERB\n")
    write(tmp_path / "labels/udpos/test-de.tsv", "DET\nNOUN\n\nVERB\n")
    write(tmp_path / "predictions/udpos/test-en.tsv", "DET\nNOUN\n\nVERB\n")
    write(tmp_path / "predictions/udpos/test-de.tsv", "DET\nNOUN\n\nNOUN\n")
    write(tmp_path / "other/udpos/test-de.tsv", "X\nX\n\nVERB\n")
    result = evaluate(tmp_path, f"--baselines=other={tmp_path}/other")
    assert "LOADED []" in result.stdout
    assert "| de German  |     66.7 |" in result.stdout
    assert "+33.3" in result.stdout
    assert json.loads((tmp_path / "official.json").read_text())["udpos"]["avg_f1"] > 0
    names = sorted(path.name for path in (tmp_path / "report").iterdir())
    assert names == ["report.md", "scores.json", "scores_udpos.png"]


def test_help_is_light_and_names_the_flags():
    slow = (*HEAVY, "seqeval", "sklearn", "matplotlib", "numpy")
    result = run(binary(slow), "--help")
    assert result.returncode == 0, result.stderr
    assert "LOADED []" in result.stdout
    assert "rembert-evaluate --prediction_folder=" in result.stdout
    assert "sample standard deviations (n - 1)" in result.stdout
    for flag in (
        "prediction_folder",
        "output_file",
        "output_dir",
        "split",
        "compare_with",
        "conll",
    ):
        assert f"--{flag}" in result.stdout


def test_a_missing_folder_is_one_line(tmp_path):
    result = run(binary(HEAVY), f"--prediction_folder={tmp_path}/no", f"--label_folder={tmp_path}")
    assert result.returncode == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert "There is no folder" in result.stderr


def test_seeds_beside_an_earlier_run_and_questions_without_sklearn(tmp_path):
    gold = '[{"paragraphs": [{"context": "", "qas": [{"id": "a", "answers": [{"text": "x"}]}]}]}]'
    write(tmp_path / "labels/xquad/test-en.json", gold)
    for seed, answer in enumerate(("x", "y")):
        write(tmp_path / f"seed{seed}/xquad/test-en.json", json.dumps({"a": answer}))
    common = [f"--label_folder={tmp_path}/labels", f"--output_dir={tmp_path}/report"]
    light = (*HEAVY, "sklearn")
    first = run(binary(light), f"--prediction_folder={tmp_path}/seed1", *common)
    assert first.returncode == 0, first.stderr
    assert "LOADED []" in first.stdout
    second = run(
        binary(light),
        f"--prediction_folder={tmp_path}/seed0,{tmp_path}/seed1",
        f"--compare_with=first={tmp_path}/report/scores.json",
        *common,
    )
    assert second.returncode == 0, second.stderr
    assert "50.0 ± 70.7" in second.stdout
    assert "## Side by side with first" in second.stdout
    assert (tmp_path / "report" / "scores_compared.png").exists()


def test_a_folder_of_seeds(tmp_path):
    write(tmp_path / "labels/xnli/test-en.tsv", "neutral\nentailment\n")
    for seed, second in ((1, "entailment"), (2, "neutral")):
        write(tmp_path / f"predictions/seed_{seed}/xnli/test-en.tsv", f"neutral\n{second}\n")
    result = evaluate(tmp_path)
    assert "LOADED []" in result.stdout and "75.0 ± 35.4" in result.stdout
    text = (tmp_path / "report/report.md").read_text(encoding="utf-8")
    assert "## Run by run" in text and "| seed_1 | seed_2 |" in text and "75.0 ± 35.4" in text
    scores = json.loads((tmp_path / "report/scores.json").read_text(encoding="utf-8"))
    assert round(scores["tasks"]["xnli"]["deviation"]["languages"]["en"]["accuracy"], 1) == 35.4
    official = json.loads((tmp_path / "official.json").read_text())["xnli"]
    assert official["avg_metric"] == 75
    assert round(official["standard_deviation"]["avg_metric"], 1) == 35.4


def test_two_conll_files(tmp_path):
    write(tmp_path / "gold.txt", "Ada B-PER\n\nKyiv B-LOC\nburns O\n")
    write(tmp_path / "predicted.txt", "Ada B-PER\n\nKyiv B-LOC\n")
    flag = f"--conll={tmp_path}/gold.txt,{tmp_path}/predicted.txt"
    refused = run(binary(HEAVY), flag)
    assert refused.returncode == 1
    assert "predicted.txt:3: a sentence must have as many tokens" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    result = run(binary(HEAVY), flag, "--conll_skip_misfits")
    assert result.returncode == 0, result.stderr
    assert "f1         100.000" in result.stdout
    assert "1 sentences left out" in result.stdout


def test_treebanks_are_labels_and_become_xtremes_without_tensorflow(tmp_path):
    words = (("Nairobi", "PROPN"), ("ni", "AUX"), ("mji", "NOUN"))
    lines = [f"{n}\t{w}\t_\t{t}\t_\t_\t0\t_\t_\t_\n" for n, (w, t) in enumerate(words, start=1)]
    write(tmp_path / "raw/UD_Swahili-X/sw_x-ud-test.conllu", "".join(lines))
    write(tmp_path / "predictions/udpos/test-sw.tsv", "PROPN\nVERB\nNOUN\n")
    code = binary(HEAVY).replace("evaluate", "make_labels")
    flags = [f"--data_dir={tmp_path}/raw", f"--output_dir={tmp_path}/labels"]
    made = run(code, *flags)
    assert made.returncode == 0, made.stderr
    assert "LOADED []" in made.stdout
    assert f"Wrote 1 files to {tmp_path}/labels" in made.stdout
    assert (tmp_path / "labels/udpos/test-sw.tsv").read_text() == "PROPN\nAUX\nNOUN\n"
    refused = run(code, *flags)
    assert refused.returncode == 1
    assert len(refused.stderr.strip().splitlines()) == 1
    assert "`output_dir` must be a new or an empty folder" in refused.stderr
    scored = [
        run(
            binary(HEAVY),
            f"--prediction_folder={tmp_path}/predictions",
            f"--label_folder={tmp_path}/{folder}",
            f"--output_file={tmp_path}/{folder}.json",
        )
        for folder in ("raw", "labels")
    ]
    assert all("| sw Swahili |     66.7 |" in result.stdout for result in scored), scored
    assert all("LOADED []" in result.stdout for result in scored)
    assert (tmp_path / "raw.json").read_text() == (tmp_path / "labels.json").read_text()
