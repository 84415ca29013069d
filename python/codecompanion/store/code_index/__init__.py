"""The code index of one project: a SQLite file below the cache folder (R-231, R-239).

It holds no source text: chunks are lines of files, read from disk when they are shown. Everything in it can be made
again, so a damaged or older file is replaced. `schema` opens it, `writer` changes it, `reader` reads
it. Readers may run beside a writer (WAL).

Tables (all paths relative to the root, lines 1-based inclusive):

files(id, path UNIQUE, mtime_ns, size, sha256 BLOB, language, lines, is_parsed, indexed_at)
    One row a file. `language` "" = none known; `mtime_ns` -1: indexed from an unsaved buffer; `indexed_at` in seconds.
chunks(id, file_id, start, end, symbol, kind, hash BLOB)
    `symbol` = "parent.name" or ""; `kind` as `CodeChunk.kind`; `hash`: the first 16 bytes of the sha256 of its text.
chunk_text: FTS5(path, symbol, text), `porter unicode61`, contentless; rowid = chunks.id
    Each column holds `formats.code_words.index_words(...)` joined by spaces, so a query must be made of the same words.
    Columns give nothing back (contentless); `bm25(chunk_text, path, symbol, text weights)` works. Rows of chunks that
    are gone stay in it: JOIN chunks ON chunks.id = chunk_text.rowid, always.
names(id, name UNIQUE)
    Every name that is defined or used. Names that nobody uses any more may stay.
symbols(id, file_id, name_id, kind, parent, start, end, line, signature)
    Definitions, as `model.code.Definition`.
refs(name_id, file_id, line, uses)
    One row for each name a file uses: first line, how often. Names used only where they are defined are not there.
vectors(hash BLOB, model, dims, vector BLOB)
    float32 little-endian, by `chunks.hash` and the name of the embedding model; kept when chunks go: they come back.
meta(key, value)
    "root": the folder; "listed": when files were last listed; "complete": "1" once every listed file was indexed;
    "dead": how many rows of chunk_text have no chunk any more.
"""
