# SPDX-License-Identifier: Apache-2.0
"""read_back.py SYNCLINE RUN WORKERS: merges a recording into every format that other programs read,
reads the tables back with DuckDB, and finds the same spans, times and sums in all of them. The
second recording is of workers that run collectives.

Exits 77 (skipped) where DuckDB is missing: scripts/setup installs it into .venv-parquet.
"""

import collections
import csv
import fnmatch
import glob
import json
import os
import subprocess
import sys
import tempfile
from decimal import Decimal

import odd_trace

try:
    import duckdb
except ImportError:
    print("skipped: no DuckDB here; scripts/setup makes .venv-parquet, which has it")
    sys.exit(77)

FORMATS = "perfetto,chrome,vtune,parquet,ctf"
ORIGIN_NS = 3_600_000_000_000
# Of events: what stands in a column of its own, and not in `fields`.
FIELD_COLUMNS = ("thread", "domain", "name_id", "depth", "connection", "begin", "bytes", "since")
FIELD_COLUMNS += ("duration_ps", "id", "step_id", "_c", "_p")


def merge(syncline, run, out, *arguments, formats=FORMATS, **environment):
    return subprocess.run(
        [syncline, "merge", run, "--out", out, "--format", formats, *arguments],
        env={**os.environ, "SYNCLINE_PYTHON": sys.executable, **environment},
        cwd=os.path.dirname(out),
        capture_output=True,
        text=True,
        timeout=120,
    )


def files_below(root):
    """Path below root -> contents."""
    found = {}
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, root)] = file.read()
    return found


def ns(microseconds):
    value = Decimal(microseconds) * 1000
    assert value == int(value), f"{microseconds} us is no whole number of ns"
    return int(value)


def chrome_spans(out):
    """(category, name) -> [how many, sum of begins, sum of durations], of all ranks."""
    spans = collections.defaultdict(lambda: [0, 0, 0])
    for path in glob.glob(os.path.join(out, "chrome", "**", "*.json"), recursive=True):
        with open(path, encoding="utf-8") as file:
            trace = json.load(file, parse_float=Decimal)
        for event in trace["traceEvents"]:
            if event["ph"] != "X" or event["cat"] in ("hole", "flow"):
                continue
            entry = spans[event["cat"], event["name"]]
            entry[0] += 1
            entry[1] += ns(event["ts"]) - ORIGIN_NS
            entry[2] += ns(event["dur"])
    return dict(spans)


def table(out, name, partitioned=True):
    return f"'{out}/parquet/{name}/{'*/' if partitioned else ''}*.parquet'"


def check_tables(out):
    database = duckdb.connect()

    def rows(sql):
        return database.sql(sql).fetchall()

    found = {
        (category or "span", name): [count, begins, durations]
        for category, name, count, begins, durations in rows(
            "select category, name, count(*), sum(begin_ns)::bigint, "
            f"sum(end_ns - begin_ns)::bigint from {table(out, 'spans')} group by all"
        )
    }
    assert found == chrome_spans(out), "Parquet and Chrome's JSON have different spans"
    assert len(found) > 20, found
    types = {name: kind for name, kind, *_ in rows(f"describe from {table(out, 'spans')}")}
    for column in ("begin_ns", "end_ns", "self_ns", "bound_lo_ns", "bound_hi_ns"):
        assert types[column] == "BIGINT", types
    for bound, limit in rows(
        f"select s.bound, c.bound from (select node, max(greatest(bound_lo_ns, bound_hi_ns)) bound "
        f"from {table(out, 'spans')} group by node) s join (select node, max(bound_ns) bound from "
        f"{table(out, 'clock_bounds')} group by node) c using (node)"
    ):
        assert 0 < bound <= 2 * limit, f"spans have a bound of {bound} ns, their clock {limit} ns"
    named = set(
        rows(
            "select name, category, sum(spans)::bigint, sum(total_ns)::bigint "
            f"from {table(out, 'names')} group by all"
        )
    )
    counted = rows(
        "select name, category, count(*), sum(end_ns - begin_ns)::bigint "
        f"from {table(out, 'spans')} group by all"
    )
    assert named == set(counted), "names does not add up to spans"
    ranks = rows(
        f"select p.rank, count(*) from {table(out, 'spans')} s join "
        f"{table(out, 'tracks', False)} t using (track) join "
        f"{table(out, 'processes', False)} p on p.track = t.process group by all order by all"
    )
    assert [rank for rank, _ in ranks] == [0, 1] and min(n for _, n in ranks) > 100, ranks
    crossing = rows(
        f"select count(*), min(received_ns - sent_ns) > 0 from {table(out, 'flows', False)} f "
        f"join {table(out, 'tracks', False)} a on a.track = f.from_track "
        f"join {table(out, 'tracks', False)} b on b.track = f.to_track where a.node <> b.node"
    )
    assert crossing[0][0] > 10 and crossing[0][1], crossing
    for name in ("instants", "counters", "holes"):
        rows(f"select count(*), min(node) from {table(out, name)}")
    return rows(
        f"select s.node, count(*) from {table(out, 'spans')} s join "
        f"{table(out, 'tracks', False)} t using (track) where t.kind = 'thread' group by all"
    )


def check_partitions(out):
    """The partition graphs are the report's: sums by DuckDB, and every node of every graph."""
    with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
        listed = json.load(file)["partitions"]
    names = [table(out, name, False) for name in ("partitions", "partition_nodes")]
    graphs = table(out, "partition_graphs", False)
    found = duckdb.execute(
        "select p.node, t.name, task, devices, count(*), sum(executions)::bigint, "
        "sum(total_ns)::bigint, sum(data_edges)::bigint, count(type), "
        "count(*) filter (send_device <> receive_device), "
        f"list(struct_pack(name := n.name, tensor := tensor) order by graph_node) "
        f"from {names[0]} p join {names[1]} n using (partition) "
        f"join {table(out, 'tracks', False)} t on t.track = p.process group by all order by node"
    ).fetchall()
    assert len(found) == len(listed), f"{len(found)} partitions, {len(listed)} in the report"
    for row, partition in zip(found, sorted(listed, key=lambda listed: listed["node"])):
        nodes = partition["nodes"]
        edges = [n for n in nodes if n.get("send_device") != n.get("receive_device")]
        known = [n["data_edges"] for n in nodes if n["data_edges"] is not None]
        assert row[:3] == tuple(partition[key] for key in ("node", "process", "task")), row[:3]
        assert json.loads(row[3]) == partition["devices"], row[3]
        assert row[4:10] == (
            len(nodes),
            sum(n["executions"] for n in nodes),
            sum(n["total_ns"] for n in nodes),
            sum(known) if known else None,
            sum(n["type"] is not None for n in nodes),
            len(edges),
        ), row[:10]
        same = [{"name": n["name"], "tensor": n.get("tensor")} for n in nodes]
        assert row[10] == same, f"{partition['process']} has other nodes"
    listed_graphs = sorted(
        (p["node"], g["steps"], g["nodes"]) for p in listed for g in p["graphs"]
    )
    found_graphs = duckdb.execute(
        f"select node, steps, list(graph_node order by graph_node) from {graphs} "
        f"join {names[0]} using (partition) group by node, partition, graph, steps order by all"
    ).fetchall()
    assert found_graphs == listed_graphs, "the graphs are not the report's"
    return len(found_graphs), sum(row[9] for row in found)


def check_collectives(out):
    """Who entered and left which collective when is the report's."""
    with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
        listed = json.load(file)["collectives"]
    groups = duckdb.execute(
        "select coalesce(job, ''), name, coalesce(description, ''), ranks, size "
        f'from {table(out, "collective_groups", False)} order by "group"'
    ).fetchall()
    keys = ("job", "name", "description", "ranks", "size")
    assert groups == [tuple(group[key] for key in keys) for group in listed["groups"]], groups
    found = duckdb.execute(
        'select "group", number, name, bytes, node, rank, entered_ns, left_ns '
        f"from {table(out, 'collectives', False)} order by all"
    ).fetchall()
    members = [
        tuple(row[key] for key in ("group", "number", "name", "bytes"))
        + tuple(member[key] for key in ("node", "rank", "entered_ns", "left_ns"))
        for row in listed["rows"]
        for member in row["members"]
    ]
    assert sorted(found, key=str) == sorted(members, key=str), "collectives are not the report's"
    sums = duckdb.execute(
        "select count(*), count(distinct number), sum(entered_ns)::bigint, sum(left_ns)::bigint, "
        "count(*) filter (bound_lo_ns is null or bound_lo_ns < 0 or bound_hi_ns < 0) "
        f"from {table(out, 'collectives', False)}"
    ).fetchone()
    left = [member[7] for member in members if member[7] is not None]
    assert sums == (
        len(members),
        len(listed["rows"]),
        sum(member[6] for member in members) if members else None,
        sum(left) if left else None,
        0,
    ), sums
    return len(members)


def check_vtune(out, spans_of_threads):
    for node, count in spans_of_threads:
        (path,) = glob.glob(os.path.join(out, "vtune", f"{node}-hostname-*.csv"))
        with open(path, encoding="utf-8", newline="") as file:
            head, *lines = csv.reader(file)
        assert head == ["name", "start_tsc.CLOCK_MONOTONIC_RAW", "end_tsc", "pid", "tid"], head
        assert all(len(line) == 5 and int(line[1]) <= int(line[2]) for line in lines)
        tasks = [line for line in lines if line[3] and line[4]]
        assert len(tasks) == count, f"{node}: {len(tasks)} tasks, {count} spans of threads"


def events(syncline, run, *arguments, raw=True):
    """As recorded, which is what tables hold, or with the names of what ids stand for."""
    arguments += ("--raw",) if raw else ()
    printed = subprocess.run(
        [syncline, "events", run, "--format", "jsonl", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert printed.returncode == 0, printed.stderr
    return [json.loads(line) for line in printed.stdout.splitlines()]


def check_event_table(everything, out):
    """As Parquet they are the same, field by field. Returns how often each column was used."""
    columns = dict.fromkeys(FIELD_COLUMNS, 0)
    rows = duckdb.sql(
        "select node, time_ns, time_ns + clock_offset_ns, stream, cpu, name, context, fields, "
        f"bound_ns, {', '.join(columns)} from {table(out, 'events')}"
    ).fetchall()
    assert len(rows) == len(everything) > 1000, len(rows)

    def comparable(node, time_ns, clock_ns, stream, cpu, name, context, fields):
        # Names alike in one scope, if there are any, keep the last in both.
        values = [node, time_ns, clock_ns, stream, cpu, name, context, fields]
        return json.dumps(values, sort_keys=True)

    as_tables = []
    for row in rows:
        fields = {}
        for column, value in zip(columns, row[9:]):
            if value is not None:
                fields["name" if column == "name_id" else column] = value
                columns[column] += 1
        again = fields.keys() & (rest := json.loads(row[7] or "{}")).keys()
        assert not again, f"{again} of a {row[5]} are in columns and in `fields`"
        as_tables.append(comparable(*row[:6], json.loads(row[6] or "{}"), {**fields, **rest}))
    as_lines = []
    for event in everything:
        context = {}
        for scope in ("packet_context", "event_header", "stream_context", "event_context"):
            context.update(event.get(scope, {}))
        as_lines.append(
            comparable(
                *(event.get(key) for key in ("node", "time_ns", "clock_ns", "stream", "cpu")),
                event["event"],
                context,
                event["fields"],
            )
        )
    assert sorted(as_tables) == sorted(as_lines), "events as Parquet and as JSON lines differ"
    assert all(row[8] is None or 0 <= row[8] < 1_000_000_000 for row in rows)
    return columns


NO_IDS = ("syncline:on", "syncline:thread", "syncline:name", "syncline:canary")


def check_names(everything, named):
    """Beside ids as they were recorded: what they stand for, by the announcements alone."""
    pids, names, threads = {}, {}, {}
    for event in everything:
        node, fields = event["node"], event["fields"]
        if event["event"] == "syncline:on":
            pids[node, fields["process"]] = fields["pid"]
        elif event["event"] == "syncline:name":
            names[node, fields["process"], fields["id"]] = fields["text"]
        elif event["event"] == "syncline:thread":
            threads[node, fields["thread"]] = fields
    resolved = 0
    for event, shown in zip(everything, named, strict=True):
        expected = dict(event, format_version=2)
        ours = event["event"].startswith("syncline") and event["event"] not in NO_IDS
        if ours:
            node, fields = event["node"], dict(event["fields"])
            process = fields.pop("process", None)
            if "thread" in fields:
                thread = threads[node, fields.pop("thread")]
                process = thread["process"]
                fields.update(thread=thread["name"], tid=thread["tid"])
            fields["pid"] = pids[node, process]
            for key in fields.keys() & {"domain", "name", "key"}:
                if isinstance(fields[key], int):
                    fields[key] = names[node, process, fields[key]] if fields[key] else None
                    resolved += 1
            expected["fields"] = fields
        assert shown == expected, f"{shown}\nis not\n{expected}"
    assert resolved > 1000, resolved


def check_events(syncline, run, out):
    everything = events(syncline, run)
    with_names = events(syncline, run, raw=False)
    check_names(everything, with_names)
    times = [event["time_ns"] for event in everything]
    assert times == sorted(times), "events are not in timeline order"
    begin_ns, end_ns = times[len(times) // 3], times[len(times) // 2]
    cut = events(syncline, run, "--from", f"{begin_ns}ns", "--to", f"{end_ns}ns")
    assert cut == [e for e in everything if begin_ns <= e["time_ns"] < end_ns], "cut otherwise"
    cut = events(syncline, run, "--from", f"{begin_ns}ns", "--to", f"{end_ns}ns", raw=False)
    assert cut == [e for e in with_names if begin_ns <= e["time_ns"] < end_ns], "other names in cut"
    one = events(syncline, run, "--nodes", "worker-0")
    assert one == [e for e in everything if e["node"] == "worker-0"], "other events of one node"
    columns = check_event_table(everything, out)
    bounds = duckdb.sql(f"select max(bound_ns) from {table(out, 'events')}").fetchall()
    assert bounds[0][0] > 0, "no event has a bound"
    used = [column for column, count in columns.items() if count > 10]
    assert used == [c for c in columns if c not in ("connection", "begin", "bytes", "since")], used
    # Operators are spans made of one event each, with the same begin.
    named = collections.defaultdict(list)
    for event in everything:
        named[event["time_ns"]].append(event["event"])
    operators = duckdb.sql(
        f"select name, begin_ns from {table(out, 'spans')} where category = 'TensorFlow operators'"
    ).fetchall()
    assert len(operators) > 100, operators
    for name, time_ns in operators:
        found = any(name in event for event in named[time_ns])
        assert found, f"operator {name} at {time_ns} is not among the events"


def check_some_events(syncline, run, whole, work):
    """What --events leaves is there as it is without it: events, spans, operators."""
    patterns, out = ["syncline_itt:task_end", "*MatMul"], os.path.join(work, "some")
    chosen = ("--events", ",".join(patterns))
    merged = merge(syncline, run, out, *chosen, formats="chrome,parquet")
    assert merged.returncode == 0, merged.stderr
    wanted = [
        event
        for event in events(syncline, run)
        if any(fnmatch.fnmatchcase(event["event"], pattern) for pattern in patterns)
    ]
    assert events(syncline, run, *chosen) == wanted, "events prints others"
    columns = check_event_table(wanted, out)
    assert columns["thread"] and columns["duration_ps"], "not of both sources"
    operators = {event["event"].rpartition(":")[0] for event in wanted}
    expected = {
        (category, name): sums
        for (category, name), sums in chrome_spans(whole).items()
        if category == "TensorFlow operators" and name in operators
        or not category.startswith("TensorFlow")
    }
    assert chrome_spans(out) == expected, "spans differ from those of the whole"
    assert len(expected) > len(operators) > 2, expected
    flows = duckdb.sql(f"select count(*) from {table(out, 'flows', False)}").fetchall()
    assert flows == [(0,)], "there are arrows of what was not asked for"


def check_odd_events(syncline, work):
    """No value of an event is lost or changed, whatever it is."""
    trace, out = os.path.join(work, "odd"), os.path.join(work, "odd-out")
    written = 3000
    odd_trace.write(trace, written, odd_until=written)
    merged = merge(syncline, trace, out, formats="parquet")
    assert merged.returncode == 0, merged.stderr
    everything = events(syncline, trace)
    assert len(everything) == written, len(everything)
    columns = check_event_table(everything, out)
    halves = {"thread": 1, "bytes": 2, "depth": 2, "since": 2, "id": 2}
    for column, parts in halves.items():
        assert columns[column] == written // 2 // 2 * parts, (column, columns[column])
    assert 0 < columns["duration_ps"] < columns["id"], columns
    assert not any(columns[column] for column in ("name_id", "begin", "domain")), columns


def check_row_groups(syncline, work):
    """Events are there, and once, also where a row group lacks kinds that the one before has."""
    trace, out = os.path.join(work, "many"), os.path.join(work, "many-out")
    written, odd_until = 270_000, 100_000
    odd_trace.write(trace, written, odd_until)
    merged = merge(syncline, trace, out, formats="parquet")
    assert merged.returncode == 0, merged.stderr
    (found,) = duckdb.sql(
        "select count(*), sum(depth)::bigint, sum(id)::bigint, count(distinct name), "
        "count(distinct time_ns), sum(time_ns + clock_offset_ns)::bigint, count(distinct filename) "
        f"from read_parquet({table(out, 'events')}, filename = true)"
    ).fetchall()
    odd = range(0, odd_until, 2)
    others = sum(range(written)) - sum(odd)
    clock_sum = sum(1000 + 10 * number for number in range(written))
    expected = (written, sum(odd), -others, odd_trace.CLASSES, written, clock_sum)
    assert found[:-1] == expected, f"{found}, not {expected}"
    assert found[-1] >= 2, "one row group has all the events"


def check_pieces(syncline, run, work, whole_bytes):
    """A timeline that is larger than --shard-size is windows, none of them larger."""
    out, limit = os.path.join(work, "pieces"), whole_bytes // 2
    merged = merge(syncline, run, out, "--shard-size", str(limit), formats="perfetto")
    assert merged.returncode == 0, merged.stderr
    assert "larger than a viewer can load" in merged.stderr, merged.stderr
    files = files_below(out)
    windows = [path for path in files if path.startswith("timeline/")]
    assert len(windows) >= 2 and all(0 < len(files[path]) <= limit for path in windows), windows
    assert 0 < len(files["timeline.perfetto-trace"]) < whole_bytes
    for path in windows:
        assert os.path.join(out, path) in merged.stdout, merged.stdout
    again = merge(syncline, run, out, "--shard-size", str(limit), formats="perfetto")
    assert again.returncode == 0 and files_below(out) == files, "pieces differ from merge to merge"


def main():
    syncline, run, workers = (os.path.abspath(path) for path in sys.argv[1:4])
    with tempfile.TemporaryDirectory(prefix="syncline-exports-") as work:
        first, second = os.path.join(work, "first"), os.path.join(work, "elsewhere", "second")
        os.mkdir(os.path.dirname(second))
        for out, threads, environment in (
            (first, "1", {"TZ": "UTC", "LC_ALL": "C"}),
            (second, "4", {"TZ": "Asia/Kathmandu", "LC_ALL": "de_DE.UTF-8"}),
        ):
            merged = merge(syncline, run, out, "--threads", threads, **environment)
            assert merged.returncode == 0, merged.stderr
        files = files_below(first)
        assert len(files) > 20, sorted(files)
        for path, contents in files_below(second).items():
            assert files.pop(path) == contents, f"{path} differs: place, zone, locale or threads"
        assert not files, f"only the first merge has {sorted(files)}"
        check_vtune(first, check_tables(first))
        check_events(syncline, run, first)
        check_some_events(syncline, run, first, work)
        check_odd_events(syncline, work)
        check_row_groups(syncline, work)
        graphs, cut_edges = check_partitions(first)
        assert graphs >= 2 and cut_edges >= 10, (graphs, cut_edges)
        assert check_collectives(first) == 0, "a job without collectives has some"

        of_workers = os.path.join(work, "workers")
        # Complete but for what the golden recording was trimmed of.
        merged = merge(syncline, workers, of_workers, formats="parquet")
        assert merged.returncode in (0, 3), merged.stderr
        check_partitions(of_workers)
        assert check_collectives(of_workers) > 20
        timeline = os.path.join(first, "timeline.perfetto-trace")
        check_pieces(syncline, run, work, os.path.getsize(timeline))

        before = files_below(first)
        refused = merge(syncline, run, first, formats="parquet", SYNCLINE_PYTHON="/nowhere/python")
        assert refused.returncode == 1, refused.returncode
        assert "pip install pyarrow" in refused.stderr, refused.stderr
        assert "/nowhere/python" in refused.stderr, refused.stderr
        assert files_below(first) == before, "a merge that failed changed what was there"
    print("the same spans in Parquet (by DuckDB), Chrome's JSON and VTune's CSV")


if __name__ == "__main__":
    main()
