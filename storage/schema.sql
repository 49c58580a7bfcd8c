-- The schema as numbered migrations. A line "-- version N" starts what leads
-- from version N-1 to N; a section that was released is never changed again.
-- Foreign keys are off while a section runs and checked at its end.

-- version 1

-- One conversation. written_seq grows with every message that is written
-- anywhere, so that the order of the list does not hang on the system's clock.
CREATE TABLE chats (
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice
    title       TEXT NOT NULL,
    model       TEXT NOT NULL,
    created_ms  INTEGER NOT NULL,
    updated_ms  INTEGER NOT NULL,
    written_seq INTEGER NOT NULL,
    leaf_id     INTEGER, -- end of the branch that is shown
    FOREIGN KEY (id, leaf_id) REFERENCES messages (chat_id, id)
);
CREATE INDEX chats_written ON chats (written_seq);

-- A node of a conversation's tree. A parent is older than its children, which
-- rules cycles out, and belongs to the same chat.
CREATE TABLE messages (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id          INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    parent_id        INTEGER CHECK (parent_id < id),
    role             TEXT NOT NULL,
    state            TEXT NOT NULL,
    created_ms       INTEGER NOT NULL,
    text             TEXT NOT NULL,
    thinking         TEXT,
    ids              BLOB, -- token ids, 32 bits each, little-endian
    ids_model        TEXT,
    prompt_tokens    INTEGER NOT NULL,
    reused_tokens    INTEGER NOT NULL,
    evaluated_tokens INTEGER NOT NULL,
    generated_tokens INTEGER NOT NULL,
    ttft_ms          REAL NOT NULL,
    prefill_tps      REAL NOT NULL,
    decode_tps       REAL NOT NULL,
    searchable       INTEGER NOT NULL, -- text is in message_words
    UNIQUE (chat_id, id),
    FOREIGN KEY (chat_id, parent_id) REFERENCES messages (chat_id, id)
);
CREATE INDEX messages_children ON messages (chat_id, parent_id, id);
CREATE INDEX messages_unsearchable ON messages (id) WHERE searchable = 0;

CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- The index reads texts through a view without the two marks that a snippet
-- puts around matches. They separate words, so its tokens are those of the text.
CREATE VIEW message_texts (id, text) AS
    SELECT id, replace(replace(text, char(2), ' '), char(3), ' ')
    FROM messages WHERE searchable;
CREATE VIEW chat_titles (id, title) AS
    SELECT id, replace(replace(title, char(2), ' '), char(3), ' ') FROM chats;
CREATE VIRTUAL TABLE message_words USING fts5 (
    text, content = 'message_texts', content_rowid = 'id', tokenize = 'tern_words'
);
CREATE VIRTUAL TABLE title_words USING fts5 (
    title, content = 'chat_titles', content_rowid = 'id', tokenize = 'tern_words'
);

CREATE TRIGGER message_added AFTER INSERT ON messages WHEN new.searchable BEGIN
    INSERT INTO message_words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER message_changed AFTER UPDATE OF text, searchable ON messages BEGIN
    INSERT INTO message_words (message_words, rowid, text)
        SELECT 'delete', old.id, old.text WHERE old.searchable;
    INSERT INTO message_words (rowid, text)
        SELECT new.id, new.text WHERE new.searchable;
END;
CREATE TRIGGER message_removed AFTER DELETE ON messages WHEN old.searchable BEGIN
    INSERT INTO message_words (message_words, rowid, text)
        VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER title_added AFTER INSERT ON chats BEGIN
    INSERT INTO title_words (rowid, title) VALUES (new.id, new.title);
END;
CREATE TRIGGER title_changed AFTER UPDATE OF title ON chats BEGIN
    INSERT INTO title_words (title_words, rowid, title)
        VALUES ('delete', old.id, old.title);
    INSERT INTO title_words (rowid, title) VALUES (new.id, new.title);
END;
CREATE TRIGGER title_removed AFTER DELETE ON chats BEGIN
    INSERT INTO title_words (title_words, rowid, title)
        VALUES ('delete', old.id, old.title);
END;

-- version 2

-- Kept timelines: the files below the snapshot folder, which hold the data. A
-- row without its file, or a file without its row, does no harm.
CREATE TABLE snapshots (
    name    TEXT PRIMARY KEY, -- path below the snapshot folder
    chat_id INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    key     TEXT NOT NULL,    -- fingerprint of model, arithmetic and layout
    kind    TEXT NOT NULL,    -- rows, state
    tokens  INTEGER NOT NULL, -- the prefix it helps to restore
    bytes   INTEGER NOT NULL,
    used_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX snapshots_chat ON snapshots (chat_id);

-- version 3

-- What the list shows without reading messages, kept by triggers; what a
-- conversation was given: its title by whom (0 its first message, 1 a model,
-- 2 the user), its own settings, and text that was typed but not sent.
ALTER TABLE chats ADD COLUMN n_messages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chats ADD COLUMN n_bytes INTEGER NOT NULL DEFAULT 0; -- of texts
ALTER TABLE chats ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chats ADD COLUMN title_source INTEGER NOT NULL DEFAULT 2;
ALTER TABLE chats ADD COLUMN model_path TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN settings TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN draft TEXT NOT NULL DEFAULT '';
UPDATE chats SET (n_messages, n_bytes) = (
    SELECT count(*), coalesce(sum(length(CAST(text AS BLOB))), 0)
    FROM messages WHERE chat_id = chats.id);

ALTER TABLE messages ADD COLUMN model TEXT; -- that wrote it
ALTER TABLE messages ADD COLUMN thinking_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN thinking_ms REAL NOT NULL DEFAULT 0;

CREATE TRIGGER message_counted AFTER INSERT ON messages BEGIN
    UPDATE chats SET n_messages = n_messages + 1,
        n_bytes = n_bytes + length(CAST(new.text AS BLOB)) WHERE id = new.chat_id;
END;
CREATE TRIGGER message_resized AFTER UPDATE OF text ON messages BEGIN
    UPDATE chats SET n_bytes = n_bytes + length(CAST(new.text AS BLOB))
        - length(CAST(old.text AS BLOB)) WHERE id = new.chat_id;
END;
CREATE TRIGGER message_uncounted AFTER DELETE ON messages BEGIN
    UPDATE chats SET n_messages = n_messages - 1,
        n_bytes = n_bytes - length(CAST(old.text AS BLOB)) WHERE id = old.chat_id;
END;
