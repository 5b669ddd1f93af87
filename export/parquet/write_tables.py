# SPDX-License-Identifier: Apache-2.0
"""Writes tables as Parquet with pyarrow: the other half of export/parquet/table_writer.cc.

Reads batches from standard input, each a row group: a line of JSON and, behind it, the buffers of
the columns of its pieces as Arrow lays them out; answers on standard output: "ready VERSION", and
in the end "done" or "error WHY". Each file is written by one thread, in the order of its batches:
the bytes do not depend on how many threads there are.
"""

import functools
import gc
import json
import os
import queue
import sys
import threading

gc.disable()  # nothing here makes cycles, and imports are searched for them again and again

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    print(f"error {error}", flush=True)
    sys.exit(1)

TYPES = {
    "int64": pa.int64(),
    "word": pa.int64(),
    "int32": pa.int32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "name": pa.dictionary(pa.int32(), pa.string()),
    "text": pa.string(),
}
TIMES = ("begin_ns", "end_ns", "time_ns")  # what rows are chosen by
# Of times that are packed as differences nothing can be saved, except where many sources mix.
INCOMPRESSIBLE = ("begin_ns", "end_ns", "self_ns")
OBJECTS = ("arguments",)  # hardly one like the other: a dictionary costs time and room
BATCHES_WAITING = 2  # per thread


@functools.lru_cache(16)
def repeated(kind, value, rows):
    """The column of a batch whose rows all say the same; mostly it does so in the next one, too."""
    if pa.types.is_dictionary(kind):
        codes = pa.repeat(pa.scalar(0, pa.int32()), rows)
        return pa.DictionaryArray.from_arrays(codes, pa.array([value], pa.string()))
    return pa.repeat(pa.scalar(value, kind), rows)


def column_of(entry, rows, buffer):
    def at(key):
        return None if key not in entry else buffer.slice(entry[key])

    kind, nulls = TYPES[entry["type"]], entry.get("nulls", 0)
    if nulls == rows:
        return pa.nulls(rows, kind)
    if entry.get("same"):
        one = column_of({**entry, "same": False}, 1, buffer)[0]
        # Texts may be large, and of doubles two that differ may be equal.
        kept = entry["type"] not in ("text", "double")
        return repeated(kind, one.as_py(), rows) if kept else pa.repeat(one, rows)
    if entry["type"] == "text":
        buffers = [at("validity"), at("offsets"), at("values")]
        return pa.Array.from_buffers(kind, rows, buffers, nulls)
    if entry["type"] == "name":
        codes = pa.Array.from_buffers(pa.int32(), rows, [at("validity"), at("values")], nulls)
        return pa.DictionaryArray.from_arrays(codes, pa.array(entry["dictionary"], pa.string()))
    return pa.Array.from_buffers(kind, rows, [at("validity"), at("values")], nulls)


def open_writer(path, columns):
    os.makedirs(os.path.dirname(path), exist_ok=True)

    def named(*kinds):
        return [c["name"] for c in columns if c["type"] in kinds]

    encodings = dict.fromkeys(named("int64"), "DELTA_BINARY_PACKED")
    # Tracks, depths, ids: takes less time, and with compression less room.
    encodings.update(dict.fromkeys(named("word", "int32", "bool"), "PLAIN"))
    schema = pa.schema([pa.field(c["name"], TYPES[c["type"]], c["nullable"]) for c in columns])
    return pq.ParquetWriter(
        path,
        schema,
        version="2.6",
        data_page_version="2.0",
        compression={n: "none" if n in INCOMPRESSIBLE else "zstd" for n in named(*TYPES)},
        compression_level={
            n: 1 if n in ("time_ns", *named("name", "text", "word")) else -1
            for n in named(*TYPES)
            if n not in INCOMPRESSIBLE
        },
        store_schema=False,
        write_statistics=[name for name in named("int64") if name in TIMES],
        use_dictionary=[c for c in named("name", "text", "double") if c not in OBJECTS],
        column_encoding=encodings,
    )


class Worker(threading.Thread):
    """Writes the files that are its own; gives back the memory of batches that are written."""

    def __init__(self, spare):
        super().__init__(daemon=True)
        self.spare = spare
        self.batches = queue.Queue(BATCHES_WAITING)
        self.error = None
        self.start()

    def run(self):
        writers = {}
        while (item := self.batches.get()) is not None:
            if self.error is None:
                try:
                    self.write(writers, *item)
                    self.spare.put(item[2])
                except Exception as error:  # all of them are for the reader of "error ..."
                    self.error = error
        for writer in writers.values():
            try:
                writer.close()
            except Exception as error:
                self.error = self.error or error

    @staticmethod
    def write(writers, path, header, data):
        if path not in writers:
            writers[path] = open_writer(path, header["pieces"][0]["columns"])
        schema, buffer = writers[path].schema, pa.py_buffer(data)
        tables = []
        for piece in header["pieces"]:
            columns = [column_of(entry, piece["rows"], buffer) for entry in piece["columns"]]
            tables.append(pa.Table.from_arrays(columns, schema=schema))
        # One dictionary for all of a row group: with several, its writer gives them up.
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries()
        writers[path].write_table(table, row_group_size=max(1, table.num_rows))


def room_for(size, spare):
    """A spare one that is large enough, or a new one."""
    try:
        data = spare.get_nowait()
    except queue.Empty:
        return bytearray(size)
    return data if size <= len(data) else bytearray(size)


def main(directory, threads):
    print("ready", pa.__version__, flush=True)
    stream = os.fdopen(0, "rb", buffering=1 << 16)
    spare = queue.SimpleQueue()
    workers = [Worker(spare) for _ in range(threads)]
    owners = {}
    while line := stream.readline():
        header = json.loads(line)
        data = room_for(header["bytes"], spare)
        view, filled = memoryview(data)[: header["bytes"]], 0
        while filled < len(view):
            count = stream.readinto(view[filled:])
            if count == 0:
                raise EOFError("the tables end in the middle of a batch")
            filled += count
        owner = owners.setdefault(header["path"], workers[len(owners) % threads])
        owner.batches.put((os.path.join(directory, header["path"]), header, data))
    for worker in workers:
        worker.batches.put(None)
    for worker in workers:
        worker.join()
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    print("done", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]))
    except Exception as error:
        print("error", " ".join(f"{type(error).__name__}: {error}".split()), flush=True)
        sys.exit(1)
