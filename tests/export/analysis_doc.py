# SPDX-License-Identifier: Apache-2.0
"""analysis_doc.py SYNCLINE DOC PROFILE WORKERS: every block of docs/analysis.md runs on the tables
of recordings; SQL and Python answer the same, and it is what report.json of the same merge says.

The recordings: a real one of TensorFlow with steps and tensors, a real one of workers that run
collectives, and one of PyTorch that is made up (ddp_recording.py).

Exits 77 (skipped) where DuckDB or Polars is missing: scripts/setup makes .venv-parquet.
"""

import ast
import collections
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

import ddp_recording  # noqa: E402  (after the path is set)

try:
    import duckdb
    import polars  # noqa: F401  (the document's blocks import it)
except ImportError:
    print("skipped: no DuckDB or no Polars here; scripts/setup makes .venv-parquet, with both")
    sys.exit(77)

OPTIMIZER = "Optimizer.step#"
NO_LOSS = "not covered"


def blocks(path):
    """[(heading, language, text)] of the document's blocks in SQL and Python."""
    found, heading, language, lines = [], "", None, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("```"):
                if language in ("sql", "python"):
                    found.append((heading, language, "".join(lines)))
                language, lines = (line[3:].strip(), []) if language is None else (None, [])
            elif language is not None:
                lines.append(line)
            elif line.startswith("## "):
                heading = line[3:].strip()
    assert language is None, "a block of the document has no end"
    return found


class Sql:
    """A session of DuckDB."""

    def __init__(self):
        self.database = duckdb.connect()

    def run(self, text):
        """The rows of the last statement, as dictionaries."""
        for statement in duckdb.extract_statements(text):
            cursor = self.database.execute(statement)
            columns, rows = [column[0] for column in cursor.description], cursor.fetchall()
        return [dict(zip(columns, row, strict=True)) for row in rows]


class Python:
    """A notebook: blocks share their names, and the last expression of a block is its answer."""

    def __init__(self):
        self.names = {}

    def run(self, text):
        *before, last = ast.parse(text).body
        shows = isinstance(last, ast.Expr)
        statements = before if shows else [*before, last]
        exec(compile(ast.Module(statements, []), "block", "exec"), self.names)
        if not shows:
            return []
        return eval(compile(ast.Expression(last.value), "block", "eval"), self.names).to_dicts()


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b


def answers(document, sql):
    """{heading: [rows of its first pair of blocks, of its second]}, by DuckDB and by Polars."""
    python, found, waiting = Python(), collections.defaultdict(list), []
    for heading, language, text in document:
        rows = {"sql": sql, "python": python}[language].run(text)
        if language == "sql":
            waiting.append((heading, rows))
            continue
        asked_before, expected = waiting.pop()
        assert asked_before == heading and not waiting, f"{heading}: not SQL and Python by turns"
        assert len(rows) == len(expected), f"{heading}: {rows}\nis not\n{expected}"
        for row, other in zip(rows, expected, strict=True):
            alike = list(row) == list(other) and all(same(row[key], other[key]) for key in row)
            assert alike, f"{heading}: {row}\nis not\n{other}"
        found[heading].append(expected)
    assert not waiting, f"{waiting[0][0]}: SQL without Python"
    return dict(found)


def close(a, b, within=1e-6):
    """Of ms: to the ns."""
    return abs(a - b) <= within


def steps_of(report):
    """{(rank, name): lengths in ms}."""
    found = {}
    ranks = {p["name"]: p["rank"] for node in report["nodes"] for p in node["processes"]}
    for series in report["steps"]:
        name = series["name"].removesuffix(" to the next")
        if name == "train_step" or name.startswith(OPTIMIZER):
            lengths = [(step["end_ns"] - step["begin_ns"]) / 1e6 for step in series["steps"]]
            found[ranks[series["process"]], name] = lengths
    return found


def check_steps(rows, report):
    expected = steps_of(report)
    found = {(row["rank"], row["name"]) for row in rows}
    assert found == set(expected), f"{rows}\n{expected.keys()}"
    for row in rows:
        lengths = expected[row["rank"], row["name"]]
        assert row["steps"] == len(lengths), f"{row}: {len(lengths)} steps in the report"
        assert close(row["mean_ms"], statistics.mean(lengths)), row
        assert close(row["median_ms"], statistics.median(lengths)), row
        if len(lengths) > 1:
            tenths = statistics.quantiles(lengths, n=10, method="inclusive")
            assert close(row["p90_ms"], tenths[8]), row


def whole_collectives(report):
    """[(group's name, members by their entry)] of those in which every rank was seen."""
    groups = report["collectives"]["groups"]
    for row in report["collectives"]["rows"]:
        group = groups[row["group"]]
        if len(row["members"]) == group["size"]:
            yield group["name"], sorted(row["members"], key=lambda member: member["entered_ns"])


def check_last(rows, report):
    found, behind_ms = collections.Counter(), collections.defaultdict(list)
    for name, members in whole_collectives(report):
        found[name, members[-1]["rank"]] += 1
        lead_ns = members[-1]["entered_ns"] - members[-2]["entered_ns"]
        behind_ms[name, members[-1]["rank"]].append(lead_ns / 1e6)
    assert found == {(r["group_name"], r["rank"]): r["last"] + r["undecided"] for r in rows}, found
    order = [kind["first_before_last"] for kind in report["collectives"]["kinds"]]
    # With two ranks the first and the last are all there are.
    assert all(group["size"] == 2 for group in report["collectives"]["groups"])
    assert sum(row["last"] for row in rows) == sum(levels["proven"] for levels in order), order
    undecided = sum(levels["likely"] + levels["undecided"] for levels in order)
    assert sum(row["undecided"] for row in rows) == undecided, order
    for row in rows:
        leads = behind_ms[row["group_name"], row["rank"]]
        if row["undecided"] == 0:
            assert close(row["behind_ms"], statistics.median(leads)), row
        bounds_us = [node["clock_bound_ns"] / 1e3 for node in report["nodes"]]
        assert 0 < row["bound_us"] <= 2 * sum(bounds_us), f"{row}, {bounds_us}"
    return undecided


def check_waiting(rows, report):
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for name, members in whole_collectives(report):
        for member in members:
            entry = sums[name, member["rank"]]
            entry[0] += 1
            if member["left_ns"] is not None:
                entry[1] += member["left_ns"] - member["entered_ns"]
            entry[2] += members[-1]["entered_ns"] - member["entered_ns"]
    assert {(row["group_name"], row["rank"]) for row in rows} == set(sums), rows
    for row in rows:
        count, inside_ns, waiting_ns = sums[row["group_name"], row["rank"]]
        assert row["collectives"] == count, row
        assert close(row["in_collectives_ms"] or 0, inside_ns / 1e6), row
        assert close(row["waiting_ms"], waiting_ns / 1e6), row
        assert 0 < row["bound_ms"], row


def check_operators(rows, report, sql):
    """Tasks are the report's; those in steps are some of them, counted here one by one."""
    listed = {
        (t["node"], t["domain"], t["name"]): (t["count"], t["total_ns"], t["self_ns"])
        for t in report["tasks"]
        if t["count"] > 0 and not any(letter in t["name"] for letter in "0123456789")
    }
    tasks = sql.run(
        "select node, category, name, count(*) as count, sum(end_ns - begin_ns)::bigint as total, "
        "sum(self_ns)::bigint as self from tasks('run') "
        f"where end_ns <= {report['window']['end_ns']} group by all"
    )
    by_name = {tuple(t.values())[:3]: tuple(t.values())[3:] for t in tasks}
    assert listed and listed == {key: by_name.get(key) for key in listed}, f"{listed}\n{by_name}"
    spans = sql.run("select process, rank, category, name, begin_ns, self_ns from tasks('run')")
    steps = collections.defaultdict(list)
    for step in sql.run("select process, begin_ns, end_ns from steps('run')"):
        steps[step["process"]].append((step["begin_ns"], step["end_ns"]))
    sums = collections.defaultdict(lambda: [0, 0])
    for span in spans:
        if any(begin <= span["begin_ns"] < end for begin, end in steps[span["process"]]):
            entry = sums[span["rank"], span["category"], span["name"]]
            entry[0] += 1 / len(steps[span["process"]])
            entry[1] += span["self_ns"] / 1e6 / len(steps[span["process"]])
    longest = collections.defaultdict(list)
    for (rank, *_), (_, self_ms) in sums.items():
        longest[rank].append(self_ms)
    found = collections.defaultdict(list)
    for row in rows:
        calls, self_ms = sums[row["rank"], row["category"], row["name"]]
        assert close(row["calls"], calls) and close(row["self_ms"], self_ms), f"{row}, {self_ms} ms"
        found[row["rank"]].append(row["self_ms"])
    for rank, times in longest.items():
        expected = sorted(times, reverse=True)[:5]
        assert all(map(close, found[rank], expected)) and len(found[rank]) == len(expected), rank
    return sums


def check_differences(rows, sums):
    by_name = collections.defaultdict(dict)
    for (rank, *name), (calls, self_ms) in sums.items():
        by_name[tuple(name)][rank] = (self_ms, calls)
    ranks = {rank for rank, *_ in sums}
    if len(ranks) < 2:
        assert not rows, rows
        return
    spread = {}
    for name, each in by_name.items():
        times = sorted(each.get(rank, (0, 0))[0] for rank in ranks)
        spread[name] = times[-1] - times[0]
    largest = sorted(spread.values(), reverse=True)
    for row, expected in zip(rows, largest[:10], strict=True):
        name = row["category"], row["name"]
        assert close(row["more_ms"], expected) and close(row["more_ms"], spread[name]), row
        assert close(row["most_ms"], by_name[name][row["most"]][0]), row
        assert close(row["most_calls"], by_name[name][row["most"]][1]), row


def check_transfers(rows, report):
    """The report's median of an even number is the higher of the two in the middle."""
    edges = {edge["tensor"]: edge for edge in report["tensors"]["edges"]}
    drawn = collections.Counter()
    for row in rows:
        bounds_us = [node["clock_bound_ns"] / 1e3 for node in report["nodes"]]
        assert 0 < row["bound_us"] <= 1.5 * sum(bounds_us), f"{row}, {bounds_us}"
        edge = edges.pop(row["edge"], None)
        kind = "message" if row["edge"] == "message" else row["edge"].split(" ")[0]
        drawn[kind if edge is None else "tensor"] += row["transfers"]
        if edge is None:
            continue
        assert row["transfers"] == edge["count"], f"{row}\n{edge}"
        assert (row["send_node"], row["receive_node"]) == (edge["send_node"], edge["receive_node"])
        if row["transfers"] % 2 == 1:
            assert close(row["median_us"], edge["flight"]["est_ns"] / 1e3, within=0.002), f"{edge}"
        assert edge["flight"]["bound_ns"] <= row["bound_us"] * 1e3 + 1, f"{row}\n{edge}"
    assert not edges, f"edges without transfers: {edges}"
    assert drawn["message"] == report["messages"]["arrows"]["drawn"], drawn
    received_us = collections.defaultdict(list)
    for row in report["transfers"]["rows"]:
        if row["received_ns"] is not None:
            edge = "rank {source} to {destination}, tag {tag}".format(**row)
            received_us[edge].append((row["received_ns"] - row["sent_ns"]) / 1e3)
    found = {row["edge"]: row for row in rows if row["edge"].startswith("rank ")}
    assert set(found) == set(received_us), f"{rows}\n{received_us.keys()}"
    for edge, row in found.items():
        assert row["transfers"] == len(received_us[edge]), row
        assert close(row["median_us"], statistics.median(received_us[edge])), row
    return drawn


def check_machines(rows, report):
    """The counters also have samples just outside of the window."""
    main_threads = {
        process["rank"]: (process["main_thread"], process["sampled_ns"])
        for machine in report["machines"]
        for process in machine["processes"]
    }
    assert {row["rank"] for row in rows} == set(main_threads), f"{rows}\n{main_threads}"
    for row in rows:
        thread, sampled_ns = main_threads[row["rank"]]
        waiting_ns = thread["waiting_ns"] + thread["throttled_ns"]
        assert abs(row["on_cpu_percent"] - 100 * thread["running_ns"] / sampled_ns) < 0.5, row
        assert abs(row["waiting_percent"] - 100 * waiting_ns / sampled_ns) < 0.5, row


def check_losses(rows, report):
    """Of every loss there is a hole, and of every hole that is one, a loss."""
    lost = {(node["name"], loss["reason"]) for node in report["nodes"] for loss in node["losses"]}
    lost = {loss for loss in lost if loss[1] != NO_LOSS}
    holes = {(row["node"], row["reason"]) for row in rows if row["reason"] != NO_LOSS}
    assert holes == lost, f"{holes}, {lost}"
    covered_ns = {p["name"]: p["missing_ns"] for n in report["nodes"] for p in n["processes"]}
    missing_ms = {row["lane"]: row["ms"] for row in rows if row["kind"] == "process"}
    for process, missing_ns in covered_ns.items():
        assert close(missing_ms.get(process, 0), missing_ns / 1e6), f"{process}: {missing_ms}"
    return len(lost)


def check_comparison(answer, before, report):
    steps, operators = answer
    old, new = steps_of(before), steps_of(report)
    assert {(row["rank"], row["name"]) for row in steps} == set(old) & set(new), steps
    for row in steps:
        key = row["rank"], row["name"]
        old_ms, new_ms = statistics.median(old[key]), statistics.median(new[key])
        assert close(row["before_ms"], old_ms) and close(row["run_ms"], new_ms), row
        assert close(row["change_percent"], 100 * (new_ms / old_ms - 1)), row
    changes = [abs(row["change_ms"]) for row in operators]
    assert changes == sorted(changes, reverse=True) and len(changes) in (0, 10), operators


def merge(syncline, recording, name, *arguments):
    """Into ./name/out, as if the recording stood at ./name; its report."""
    out = os.path.join(name, "out")
    os.makedirs(name)
    merged = subprocess.run(
        [syncline, "merge", recording, "--out", out, "--format", "parquet", *arguments],
        env={**os.environ, "SYNCLINE_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert merged.returncode in (0, 3), merged.stderr
    with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
        return json.load(file)


def check_document(document, syncline, recording):
    """On the tables of one recording, beside those of its first half. How many rows there were."""
    report = merge(syncline, recording, "run")
    begins = [step["begin_ns"] for series in report["steps"] for step in series["steps"]]
    middle_ns = round(statistics.median(begins)) if begins else report["window"]["end_ns"] // 2
    before = merge(syncline, recording, "before", "--to", f"{middle_ns}ns")
    sql = Sql()
    answer = answers(document, sql)
    (rows,) = answer["Step times"]
    check_steps(rows, report)
    (rows,) = answer["Who enters last"]
    undecided = check_last(rows, report)
    (rows,) = answer["Waiting in collectives"]
    check_waiting(rows, report)
    (rows,) = answer["The longest operators"]
    sums = check_operators(rows, report, sql)
    (rows,) = answer["What differs between ranks"]
    check_differences(rows, sums)
    (rows,) = answer["Transfers"]
    drawn = check_transfers(rows, report)
    (rows,) = answer["What the main threads did"]
    check_machines(rows, report)
    (rows,) = answer["What was lost"]
    losses = check_losses(rows, report)
    check_comparison(answer["Two recordings compared"], before, report)
    counts = {heading: min(map(len, tables)) for heading, tables in answer.items()}
    return collections.Counter({**counts, **drawn, "losses": losses, "undecided": undecided})


# (number, rank, node, entered_ns, left_ns, bound_ns) of three ranks, two of them of one node.
BY_HAND = [
    *((1, 0, "a", 0, 200_000, 1000), (1, 1, "a", 500, 200_000, 1000)),
    (1, 2, "b", 100_000, 200_000, 1000),  # the last one, proven
    *((2, 0, "a", 5000, 9000, 1000), (2, 2, "b", 0, 9000, 1000)),
    (2, 1, "a", 5300, 9000, 1000),  # by less than the bound, but on the other's clock
    *((3, 0, "a", 0, 9000, 1000), (3, 1, "a", 0, 9000, 1000)),
    (3, 2, "b", 1500, 9000, 1000),  # undecided
    *((4, 0, "a", 0, 9000, 1000), (4, 1, "a", 7000, 9000, 1000)),  # the third was not seen
    *((5, 0, "a", 0, None, 1000), (5, 1, "a", 0, None, 1000)),
    (5, 2, "b", 1_000_000, None, None),  # its bound is not known
]


def check_by_hand(document):
    """More ranks than the recordings have, and what a model that knows nothing leaves."""
    database = duckdb.connect()
    for name in ("collectives", "collective_groups"):
        os.makedirs(f"run/out/parquet/{name}")
    database.execute(
        "create table c (number bigint, rank int, node varchar, entered_ns bigint, left_ns bigint, "
        "bound_lo_ns bigint)"
    )
    database.executemany("insert into c values (?, ?, ?, ?, ?, ?)", BY_HAND)
    database.execute(
        "copy (select 0 as \"group\", 'allreduce' as name, *, bound_lo_ns as bound_hi_ns from c) "
        "to 'run/out/parquet/collectives/part-0.parquet'; "
        "copy (select 0 as \"group\", null::varchar as job, '0' as name, 3 as size) "
        "to 'run/out/parquet/collective_groups/part-0.parquet'"
    )
    wanted = ("Set-up", "Who enters last", "Waiting in collectives")
    answer = answers([block for block in document if block[0] in wanted], Sql())
    keys = ("rank", "last", "undecided", "behind_ms", "bound_us")
    found = [tuple(row[key] for key in keys) for row in answer["Who enters last"][0]]
    assert found == [(1, 1, 0, 0.0003, 2.0), (2, 1, 2, 0.0995, 2.0)], found
    keys = ("rank", "collectives", "in_collectives_ms", "waiting_ms", "bound_ms")
    found = [tuple(row[key] for key in keys) for row in answer["Waiting in collectives"][0]]
    expected = [(0, 4, 0.213, 1.1018, None), (1, 4, 0.2122, 1.101, None)]
    expected.append((2, 4, 0.1165, 0.0053, 0.002))
    assert all(same(*pair) for rows in zip(found, expected) for pair in zip(*rows)), found


def main():
    syncline, doc, profile, workers = (os.path.abspath(path) for path in sys.argv[1:5])
    document = blocks(doc)
    rows = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="syncline-analysis-") as work:
        pytorch = os.path.join(work, "pytorch")
        ddp_recording.write(profile, pytorch)
        for number, recording in enumerate((profile, workers, pytorch)):
            folder = os.path.join(work, str(number))
            os.mkdir(folder)
            os.chdir(folder)
            found = check_document(document, syncline, recording)
            print(f"{recording}: {dict(found)}")
            rows += found
        folder = os.path.join(work, "by hand")
        os.mkdir(folder)
        os.chdir(folder)
        check_by_hand(document)
        os.chdir(ROOT)
    headings = {heading for heading, *_ in document} - {"Set-up"}
    wanted = headings | {"tensor", "message", "rank", "losses", "undecided"}
    assert set(rows) >= wanted, f"no recording has {wanted - set(rows)}"


if __name__ == "__main__":
    main()
