"""What lesson 18 predicts: the rows that servers send, and those that a perfect memory would know."""

from lesson_parts.huge_tables import perfect_memory, rows_of_servers


def test_perfect_memory_knows_the_ids_of_earlier_batches_and_half_of_the_others():
    batches = [([0, 1], None), ([1, 2], None)]
    assert perfect_memory(batches.__getitem__, 3, [0, 1]).tolist() == [0.5, 0.75]


def test_a_server_sends_each_different_row_once():
    assert rows_of_servers(lambda number: ([0, 1, 2, 3, 3], None), 8, 2, 3).tolist() == [3, 1]
