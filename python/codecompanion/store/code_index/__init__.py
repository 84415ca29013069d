"""Stores the code index of a project: an SQLite file below the cache folder (R-231, R-239).

It contains no source text: chunks are lines of files, read from disk when they are shown. Everything in it can be
rebuilt, so a damaged or older file is replaced. `index_tables` opens it, `index_writer` changes it, `reader` reads it.
Readers and a writer can run at the same time (WAL).

Tables (all paths relative to the root, lines 1-based inclusive):

files(id, path UNIQUE, mtime_ns, size, sha256 BLOB, language, lines, is_parsed, indexed_at, why_not)
    One row per file. `language` "" = unknown; `mtime_ns` -1: from an unsaved buffer, 0: check the file again.
    `why_not`: why no part of the file is indexed (binary, generated, too large …; it then has no other rows), or "".
chunks(id, file_id, start, end, symbol, kind, hash BLOB)
    A view of `pieces`, which has numbers in place of symbol and kind, and a line count in place of the last line.
    `symbol` = "parent.name" or ""; `kind` as `CodeChunk.kind`; `hash`: the first 10 bytes of the sha256 of its text.
chunk_text: FTS5(path, symbol, text), `porter unicode61`, contentless; rowid = chunks.id
    Each column contains `formats.code_words.index_words(...)` joined by spaces, so queries must use the same words;
    at most `MAX_REPEATS` occurrences of a word are kept per chunk.
    Columns cannot be read back (contentless); `bm25(chunk_text, path, symbol, text weights)` works. Rows of deleted
    chunks remain, so always JOIN chunks ON chunks.id = chunk_text.rowid.
names(id, name, hash)
    Every defined or referenced name, once; found by `name_hashes.name_hash`. Unused names may stay for a while.
symbols(file_id, ordinal, name_id, kind, parent, start, end, line)
    A view of `definitions`, which has numbers in place of kind and parent, and line counts in place of the last line
    and the line of the name.
    Definitions, as `model.code.Definition`; `ordinal` is the index of its signature in the file's outline.
outlines(file_id, signatures BLOB)
    The signatures of a file's definitions, packed (`outlines.unpack_signatures`).
refs(name_id, file_id, uses)
    One row for each name a file uses, with the number of uses; the file's own locals and parameters are omitted.
undefined_refs(file_id, names BLOB)
    After a finished build: the names that a file uses and the project does not define, packed by `names_used`.
    They get rows in `refs` as soon as a file defines them.
vectors(id, hash BLOB, model, dims, vector BLOB)
    float32 little-endian, by `chunks.hash` and the name of the embedding model; kept after their chunks are deleted,
    because the same text often reappears.
meta(key, value)
    "root": the folder; "listed": when files were last listed; "complete": "1" once every listed file was indexed;
    "dead": the number of rows of chunk_text without a chunk.
"""
