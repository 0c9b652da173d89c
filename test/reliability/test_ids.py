# SPDX-License-Identifier: Apache-2.0
"""Every id of the list of bad inputs is named by a test, or has a reason why none can."""

from support.bad_inputs import IDS, OPEN, named


def test_each_id_has_a_test_or_a_reason() -> None:
    assert len(IDS) == 89
    files = named()
    assert {name for name in IDS if not files[name]} == OPEN.keys()
    assert all(len(why) > 20 for why in OPEN.values())
