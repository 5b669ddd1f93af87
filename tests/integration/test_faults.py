# SPDX-License-Identifier: Apache-2.0
"""Ten cells of the fault matrix (tests/faults), and the matrix's own arithmetic."""

import pytest

from tests.faults import cells
from tests.faults.scenario import Scenario
from tests.faults.stage import Stage

SEED = 25


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    with Stage(tmp_path_factory.mktemp("faults"), SEED) as made:
        yield made


@pytest.mark.parametrize("cell", cells.choose(quick=True), ids=lambda cell: cell.name)
def test_cell(stage, cell):
    scenario = Scenario(stage, cell, SEED)
    scenario.go()
    assert not scenario.problems, "\n".join(scenario.problems + scenario.transcript)


def test_every_cell_is_there_once_and_the_quick_ones_exist():
    names = [cell.name for cell in cells.everything()]
    assert len(set(names)) == len(names) > 7 * 3 * 6
    assert {cell.name for cell in cells.choose(quick=True)} == set(cells.QUICK)
