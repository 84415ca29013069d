"""The code index of one project: a SQLite file below the cache folder (R-231, R-239).

It holds no source text: chunks are lines of files, read from disk when they are shown. Everything in it can be made
again, so a damaged or older file is replaced. `index_tables` opens it, `index_writer` changes it, `reader` reads
it. Readers may run beside a writer (WAL).

Tables (all paths relative to the root, lines 1-based inclusive):

files(id, path UNIQUE, mtime_ns, size, sha256 BLOB, language, lines, is_parsed, indexed_at, why_not)
    One row a file. `language` "" = none known; `mtime_ns` -1: from an unsaved buffer, 0: looked at again.
    `why_not` "" or why nothing of the file is indexed (binary, generated, too large …): it then has no other rows.
chunks(id, file_id, start, end, symbol, kind, hash BLOB)
    A view of `pieces`, which has numbers in place of symbol and kind, and lines after the first in place of the last.
    `symbol` = "parent.name" or ""; `kind` as `CodeChunk.kind`; `hash`: the first 10 bytes of the sha256 of its text.
chunk_text: FTS5(path, symbol, text), `porter unicode61`, contentless; rowid = chunks.id
    Each column holds `formats.code_words.index_words(...)` joined by spaces, so a query must be made of the same words;
    of a word that a chunk has very often, `MAX_REPEATS` are kept.
    Columns give nothing back (contentless); `bm25(chunk_text, path, symbol, text weights)` works. Rows of chunks that
    are gone stay in it: JOIN chunks ON chunks.id = chunk_text.rowid, always.
names(id, name, hash)
    Every name that is defined or referred to, once; found by `name_hashes.name_hash`. Names that nobody uses any more
    may stay for a while.
symbols(file_id, ordinal, name_id, kind, parent, start, end, line)
    A view of `definitions`, which has numbers in place of kind and parent, and differences in place of the last line
    and the name's.
    Definitions, as `model.code.Definition`; `ordinal` is the place of its signature in the file's outline.
outlines(file_id, signatures BLOB)
    The signatures of a file's definitions, packed (`outlines.unpack_signatures`).
refs(name_id, file_id, uses)
    One row for each name a file uses: how often. Not: names of its own locals and parameters.
undefined_refs(file_id, names BLOB)
    Once a build has finished: the names a file uses that nothing in the project defines, as `names_used` packs them.
    They get rows in `refs` as soon as something defines them.
vectors(id, hash BLOB, model, dims, vector BLOB)
    float32 little-endian, by `chunks.hash` and the name of the embedding model; kept when chunks go: they come back.
meta(key, value)
    "root": the folder; "listed": when files were last listed; "complete": "1" once every listed file was indexed;
    "dead": how many rows of chunk_text have no chunk any more.
"""
