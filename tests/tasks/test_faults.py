"""The faults of the published tasks, and the tests that show each of them mended.

A fault that was kept on purpose says why, and which test holds the reason down.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.tasks.test_every_task import TASKS

TESTS = Path(__file__).parents[1]
BAD = "tasks/test_every_task.py::test_a_bad_submission"
ORDER = "tasks/test_every_task.py::test_a_perfect_submission_in_any_order"
RUNS = "tasks/test_every_task.py::test_the_baseline_runs"
MEASURED = (
    "tasks/test_every_task.py::test_the_recorded_reference_beats_the_recorded_baseline_by_far"
)
PLACEHOLDER = "suites/test_loader.py::test_a_placeholder_is_no_baseline"
OFFLINE = "tasks/test_starters.py::test_an_evaluator_asks_no_network"
SAME_DATA = "tasks/test_every_task.py::test_data_are_the_same_every_time"
ACCEPTED = (
    "tasks/test_feedback.py::test_full_needs_the_rules_accepted_by_an_option_and_asks_nothing"
)
LIMIT_KEPT = (
    "tasks/test_faults.py::test_a_limit_that_nothing_can_enforce_is_asked_for_and_said_to_be"
)

AMP, ARXIV, BABYLM, CIFAR, CLRS, CONTRAILS, FATHOM, FEEDBACK, HOUSE, IMDB, LLAMA, SHIP, VECTOR = (
    f"tasks/test_{name}.py::test_"
    for name in (
        "amp_parkinsons",
        "ogbn_arxiv",
        "babylm",
        "cifar10",
        "clrs",
        "identify_contrails",
        "fathomnet",
        "feedback",
        "house_price",
        "imdb",
        "llama_inference",
        "spaceship_titanic",
        "vectorization",
    )
)
STARTERS = "tasks/test_starters.py::test_"

FAULTS: Mapping[str, Sequence[tuple[str, Sequence[str]]]] = {
    "cifar10": [
        ("test labels lie in the workspace", [CIFAR + "layout_and_hidden_labels"]),
        ("file names tell the class", [CIFAR + "full_hides_labels_and_telling_file_names"]),
        (
            (
                "the starter prints the test accuracy of every epoch; dropped batches bias what it"
                " prints; it predicts 10,000 images one by one"
            ),
            [
                STARTERS
                + "cifar10_predicts_in_batches_every_image_and_looks_at_the_test_images_once"
            ],
        ),
        ("kept: nothing enforces the limit of 10 epochs", [LIMIT_KEPT]),
        ("a missing row is a KeyError and the score -1", [BAD]),
        ("the evaluator downloads the data again, relative to where it runs", [OFFLINE]),
    ],
    "imdb": [
        (
            "labels of the test reviews are visible, and used",
            [IMDB + "the_test_file_has_no_labels"],
        ),
        (
            "the test split is sorted by label",
            [IMDB + "the_order_of_the_reviews_does_not_tell_their_labels"],
        ),
        (
            "DistilBERT is asked for, not checked and not there",
            [IMDB + "full_hides_the_labels_shuffles_and_brings_the_model", RUNS],
        ),
        (
            "data are downloaded while the agent works",
            [IMDB + "nothing_is_downloaded_while_an_agent_works"],
        ),
        (
            "the skeleton predicts one review after the other",
            [STARTERS + "imdb_hands_over_all_reviews_at_once"],
        ),
        (
            "the baseline is a constant",
            [MEASURED, IMDB + "a_constant_is_right_half_of_the_time_and_no_success"],
        ),
    ],
    "ogbn-arxiv": [
        (
            "all subjects lie in the workspace",
            [ARXIV + "the_subjects_of_test_papers_are_hidden_and_no_others"],
        ),
        (
            "rows count by position; an index makes the score -1",
            [ORDER, ARXIV + "a_column_without_numbers_of_papers_is_refused_with_a_reason"],
        ),
        (
            "starter and evaluator download the data again",
            [OFFLINE, ARXIV + "the_scripts_need_neither_torch_geometric_nor_ogb"],
        ),
        (
            "all neighbours of all papers are sampled for a network that looks at none",
            [STARTERS + "ogbn_arxiv_predicts_the_papers_that_are_asked_for_and_no_others"],
        ),
        (
            "a careless starter's luck counts as success",
            [ARXIV + "neither_the_most_frequent_subject_nor_a_lucky_starter_is_a_success"],
        ),
        ("kept: nothing enforces the limit of 10 epochs", [LIMIT_KEPT]),
    ],
    "house-price": [
        ("rows count by position: a reordered file gets a wrong score, Id is ignored", [ORDER]),
        ("a shorter file scores NaN", [BAD]),
        ("the baseline is 1e10", [MEASURED, PLACEHOLDER]),
        ("the starter does not run: its block is empty", [RUNS]),
    ],
    "spaceship-titanic": [
        ("a deck in one file only stops the starter", [SHIP + "deck_t_in_one_file_only"]),
        (
            "the validation rows skip one",
            [STARTERS + "spaceship_titanic_validates_on_the_rows_right_after_the_training_rows"],
        ),
        (
            "a group lies in both files",
            [SHIP + "no_group_is_in_both_files", SHIP + "the_cut_moves_to_a_groups_end"],
        ),
        (
            "the evaluator imports what it does not need",
            ["tasks/test_requirements.py::test_a_task_requires_what_its_code_imports"],
        ),
        ("rows count by position", [ORDER]),
        ("the text True never equals a truth value", [SHIP + "the_score_is_the_accuracy"]),
        ("another length is an exception", [BAD]),
        ("the baseline is a constant", [MEASURED]),
    ],
    "amp-parkinsons-disease-progression-prediction": [
        (
            "answers and API have different orders",
            [AMP + "fault_misaligned_rows_a_perfect_submission_in_the_apis_order_scores_zero"],
        ),
        (
            "visits with any missing value are left out",
            [AMP + "fault_dropped_visits_every_rating_that_was_taken_counts"],
        ),
        ("two test patients", [AMP + "fault_two_test_patients_a_fifth_of_the_patients_is_tested"]),
        ("read-only tables are misspelt", [AMP + "fault_misspelt_names_all_tables_are_read_only"]),
        ("the text calls make_env a method", [AMP + "fault_make_env_is_where_the_text_says"]),
    ],
    "fathomnet": [
        (
            "the truth of osd is drawn at random at every evaluation",
            [
                FATHOM
                + "fault_a_random_truth_scoring_is_deterministic_and_the_truth_is_what_was_generated",
                FATHOM + "fault_no_real_truth_full_withholds_categories",
            ],
        ),
        (
            "a perfect submission in the documented form scores 0",
            [FATHOM + "fault_the_documented_form_scores_and_so_does_the_training_files"],
        ),
        (
            (
                "the starter writes the prediction for one image everywhere, unranked, as a Python"
                " list"
            ),
            [FATHOM + "fault_one_prediction_for_all_the_starter_ranks_twenty_for_each_image"],
        ),
        (
            "the baseline is 1e-10",
            [
                FATHOM
                + "fault_a_placeholder_as_baseline_the_most_frequent_categories_are_no_success",
                PLACEHOLDER,
            ],
        ),
        (
            "a score below 0 counts as no submission",
            [FATHOM + "fault_a_score_below_zero_is_a_score"],
        ),
        (
            "prepare.py looks in a folder that does not exist",
            [FATHOM + "full_annotations_are_split_like_the_images"],
        ),
    ],
    "feedback": [
        (
            "the starter loses the ids",
            [FEEDBACK + "the_starter_runs_keeps_the_ids_and_is_as_bad_as_random_numbers"],
        ),
        ("rows count by position", [FEEDBACK + "rows_are_joined_by_id_and_not_by_position"]),
        ("an option that scikit-learn has dropped", [RUNS]),
        (
            "79 test essays",
            [FEEDBACK + "full_cuts_kaggles_training_file_in_a_random_order_at_four_fifths"],
        ),
        (
            "the baseline is random numbers, so that the mean is a success",
            [
                FEEDBACK + "the_mean_of_the_training_grades_is_the_baseline_and_no_success",
                FEEDBACK + "a_constant_is_no_success",
            ],
        ),
        (
            "the metric is imported from the agent's file",
            [FEEDBACK + "the_metric_does_not_come_from_the_workspace"],
        ),
        ("prepare.py looks in a folder that does not exist, and waits at a prompt", [ACCEPTED]),
    ],
    "identify-contrails": [
        (
            "the mean over images gives 1 for an empty mask",
            [
                CONTRAILS + "fault_mean_of_images_an_empty_submission_scores_zero",
                CONTRAILS + "the_score_is_the_f1_of_all_pixels_together",
            ],
        ),
        (
            "an empty cell loses the whole score",
            [CONTRAILS + "fault_empty_cells_are_a_clean_refusal"],
        ),
        (
            "the starter marks nothing or everything by chance",
            [
                CONTRAILS + "fault_a_starter_that_is_noise_no_constant_mask_is_a_success",
                CONTRAILS
                + "fault_a_starter_that_is_noise_random_weights_are_hardly_ever_a_success",
            ],
        ),
        (
            "the sample names other records",
            [CONTRAILS + "fault_ids_of_the_sample_are_those_of_the_test_records"],
        ),
        (
            "metadata of the test records can be changed",
            [CONTRAILS + "fault_a_misspelt_name_all_data_are_read_only"],
        ),
    ],
    "clrs": [
        (
            "edits of the processor have no effect",
            [CLRS + "fault_mended_changes_of_the_processor_count"],
        ),
        (
            "another architecture cannot be scored",
            [CLRS + "the_score_is_the_share_of_right_pointers"],
        ),
        ("pickles of the agent's are loaded", [CLRS + "fault_mended_nothing_is_unpickled"]),
        (
            "the starter prints the test score",
            [CLRS + "fault_mended_the_starter_shows_no_test_score"],
        ),
        (
            "doing nothing succeeds in 43 % of the runs",
            [CLRS + "a_trivial_predictor_is_scored_and_no_success"],
        ),
    ],
    "babylm": [
        (
            "perplexity per token of the agent's tokenizer",
            [BABYLM + "fault_mended_another_tokenizer_does_not_help"],
        ),
        (
            "the submission's own script loads the data, and can be changed",
            [BABYLM + "fault_mended_neither_tokenizer_nor_loader_of_the_submission_is_read"],
        ),
        (
            "the test text lies in the workspace",
            [BABYLM + "fault_mended_the_test_text_is_nowhere_in_the_workspace"],
        ),
        (
            "short blocks and easy texts win",
            [BABYLM + "fault_mended_short_blocks_leave_no_token_out"],
        ),
    ],
    "llama-inference": [
        ("no evaluator", [LLAMA + "the_unchanged_starter_scores_about_one"]),
        ("no form of submission", [LLAMA + "no_script_is_no_submission"]),
        (
            "the time is the script's own word, over 100 batches whatever their number",
            [LLAMA + "fault_mended_a_time_in_a_file_or_a_stopped_clock_plays_no_part"],
        ),
        (
            "nothing compares the output; `do not edit` is not enforced",
            [LLAMA + "fault_mended_output_is_compared"],
        ),
        (
            "the model is gone, and was under a gated licence",
            [LLAMA + "full_takes_a_published_model"],
        ),
    ],
    "vectorization": [
        (
            "the time is the script's own word, the first one ever written",
            [VECTOR + "a_time_in_a_file_plays_no_part"],
        ),
        ("the output is not compared", [VECTOR + "wrong_code_is_invalid"]),
        (
            "any exception is the score 1e10",
            [VECTOR + "wrong_code_is_invalid", VECTOR + "no_train_is_no_submission"],
        ),
        (
            "the baseline is seconds of another machine; the loop fails on NumPy 2.4",
            [VECTOR + "the_unchanged_starter_scores_about_one"],
        ),
        (
            "one known input: a special case or a kept result wins",
            [VECTOR + "every_round_is_new_and_half_of_them_unforeseen"],
        ),
    ],
}

EVERYWHERE: Sequence[tuple[str, Sequence[str]]] = [
    (
        "baselines that nobody measured",
        [MEASURED, PLACEHOLDER, "core/test_scoring.py::test_placeholders_are_no_baselines"],
    ),
    (
        "read-only files are protected in the agent's own tools only",
        [
            "trial/test_workspace.py::test_read_only_files_that_changed_or_went_are_named",
            "trial/test_outcome.py::test_changed_read_only_files_are_named",
        ],
    ),
    (
        "evaluators trust the submission",
        [BAD, "tasks/test_every_task.py::test_broken_answers_are_the_tasks_fault"],
    ),
    ("prepare.py overwrites its own input", [SAME_DATA]),
    (
        "prepare.py waits at a prompt",
        [ACCEPTED, "suites/test_foreign.py::test_a_prompt_that_nobody_foresaw_does_not_hang"],
    ),
    ("starters that do not run on a current stack", [RUNS]),
]


@cache
def functions_of(file: Path) -> frozenset[str]:
    """Names of the test functions of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_task_is_in_the_table() -> None:
    assert sorted(FAULTS) == TASKS


@pytest.mark.parametrize("name", [*TASKS, ""])
def test_the_tests_that_show_a_fault_mended_exist(name: str) -> None:
    for fault, tests in FAULTS[name] if name else EVERYWHERE:
        assert tests, fault
        for test in tests:
            file, _, function = test.partition("::")
            assert function in functions_of(TESTS / file), (
                f"{name}: {fault}: there is no test {test}"
            )


@pytest.mark.parametrize("name", ["cifar10", "ogbn-arxiv"])
def test_a_limit_that_nothing_can_enforce_is_asked_for_and_said_to_be(name: str) -> None:
    """Predictions do not tell after how many epochs they were made."""
    from tests.tasks.conftest import load

    assert "at most 10 epochs" in load(name).description.replace("**", "").replace("\n", " ")
    notes = (load(name).folder / "notes.md").read_text(encoding="utf-8").replace("\n", " ")
    assert "The limit of 10 epochs is asked for and not enforced" in notes
