"""What a mistyped name is answered with."""

from __future__ import annotations

from pytest_mlab.lib.suggest import nearest_first, unknown


def test_the_nearest_name_comes_first_and_ties_go_by_name() -> None:
    assert nearest_first("huose-price", ["cifar10", "house-price", "imdb"])[0] == "house-price"
    assert nearest_first("zzz", ["b", "a"]) == ["a", "b"]


def test_only_a_name_that_may_be_meant_is_asked_for() -> None:
    assert (
        unknown("task", "cifar", ["imdb", "cifar10"])
        == "unknown task 'cifar'; did you mean 'cifar10'? tasks: cifar10, imdb"
    )
    assert unknown("task", "qqq", ["imdb", "cifar10"]) == "unknown task 'qqq'; tasks: cifar10, imdb"
    assert unknown("suite", "qqq", []) == "unknown suite 'qqq'; there are no suites"
