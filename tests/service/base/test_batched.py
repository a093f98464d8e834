"""Items, some at a time."""

from service.base.batched import batched


def test_every_item_comes_once_and_in_order() -> None:
    for number in range(7):
        lists = list(batched(range(number), 3))
        assert [item for each in lists for item in each] == list(range(number))
        assert all(len(each) == 3 for each in lists[:-1])
        assert all(lists)


def test_no_item_is_taken_before_it_is_wanted() -> None:
    """What makes them may be a file of any size."""
    items = iter(range(10))
    assert next(batched(items, 4)) == [0, 1, 2, 3]
    assert next(items) == 4
