"""Exercises of 15_parameter_server."""

from exercises import Case, Exercise, Mistake


def position_in_the_table(row, rows, servers):
    return row // -(-rows // servers), row


owner = Exercise(
    cases=[
        Case(
            args=(3, 10, 2),
            answer=(0, 3),
            mistakes=[
                Mistake(
                    lambda row, rows, servers: (row % servers, row // servers),
                    "that deals the rows in turn; a shard is a run of consecutive rows, here 0 to "
                    "4 and 5 to 9",
                ),
                Mistake(
                    lambda row, rows, servers: row // -(-rows // servers),
                    "that is the server; return the row within its shard, too",
                ),
            ],
        ),
        Case(
            args=(7, 10, 2),
            answer=(1, 2),
            mistakes=[
                Mistake(
                    position_in_the_table,
                    "the server is right; its shard starts with row 5, so row 7 of the table is "
                    "row 2 of the shard",
                ),
            ],
            hint="10 rows on 2 servers are shards of [5, 5], so row 7 is (1, 2), not {answer}",
        ),
        Case(
            args=(4, 11, 3),
            answer=(1, 0),
            mistakes=[
                Mistake(
                    lambda row, rows, servers: divmod(row, rows // servers),
                    "11 rows on 3 servers are shards of [4, 4, 3]; the first two get the rows that "
                    "are left over",
                ),
            ],
        ),
        Case(
            args=(8, 10, 4),
            answer=(3, 0),
            mistakes=[
                Mistake(
                    lambda row, rows, servers: divmod(row, -(-rows // servers)),
                    "10 rows on 4 servers are shards of [3, 3, 2, 2]; not all but the last are "
                    "equally long",
                ),
            ],
            hint="10 rows on 4 servers are shards of [3, 3, 2, 2], so row 8 "
            "is (3, 0), not {answer}",
        ),
    ],
    hint="10 rows on 2 servers: 5 and 5; 11 rows on 3 servers: 4, 4 and 3; you have {answer}",
)
