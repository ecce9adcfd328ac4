"""Words in messages."""

from popf.formatting import listed, near_words, unknown, with_options

OPTIONS = {"id": "--id", "delimiter": "--delimiter", "cost_fp": "--cost-fp", "encode": "--encode"}


def test_names_are_listed_and_the_nearest_are_offered():
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert near_words("hart", ["heart", "liver"]) == "; did you mean heart?"
    assert near_words("hart", []) == "."
    said = "there is no dataset 'hart'; did you mean heart? Known: heart, liver."
    assert unknown("dataset", "hart", ["heart", "liver"]) == said


def test_parameters_in_backticks_become_options():
    assert with_options("`cost_fp` must be positive", OPTIONS) == "--cost-fp must be positive"
    assert with_options("pass `encode='onehot'`", OPTIONS) == "pass --encode onehot"
    assert with_options("pass `delimiter=';'`", OPTIONS) == "pass --delimiter ';'"
    assert with_options(r"pass `delimiter='\t'`", OPTIONS) == r"pass --delimiter $'\t'"
    assert with_options("by `id=['a b', 'c']`", OPTIONS) == "by --id 'a b' --id c"


def test_other_words_in_backticks_stay():
    for words in ("by `popf fit`", "`seed` is 3", "cost_fp is in 'cost_fp.csv'"):
        assert with_options(words, OPTIONS) == words
