/**
 * The tables, as the migrations that lead to them: entry i brings the schema from version i to i + 1.
 * Entries are never changed once released; a new need is a new entry.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    schema_version INTEGER NOT NULL,
    incarnation TEXT NOT NULL,
    tick INTEGER NOT NULL,
    changes_floor INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE pillars (
    pid TEXT NOT NULL PRIMARY KEY,
    tgt_type TEXT NOT NULL,
    tgt_id TEXT NOT NULL,
    name TEXT NOT NULL,
    pillarenv TEXT NOT NULL,
    value TEXT NOT NULL,
    is_secret INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    tick INTEGER NOT NULL,
    UNIQUE (tgt_type, tgt_id, name, pillarenv)
  ) STRICT;
  CREATE INDEX pillars_by_env ON pillars (pillarenv, name, pid);

  CREATE TABLE pillar_versions (
    pid TEXT NOT NULL,
    tick INTEGER NOT NULL,
    op TEXT NOT NULL CHECK (op IN ('create', 'update', 'delete')),
    tgt_type TEXT NOT NULL,
    tgt_id TEXT NOT NULL,
    name TEXT NOT NULL,
    pillarenv TEXT NOT NULL,
    value TEXT NOT NULL,
    is_secret INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (pid, tick)
  ) STRICT;

  CREATE TABLE collections (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    parent_id TEXT REFERENCES collections (id),
    owner TEXT NOT NULL,
    tick INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX collections_by_parent ON collections (parent_id);

  CREATE TABLE masters (
    id TEXT NOT NULL PRIMARY KEY,
    envs TEXT NOT NULL,
    token_ids TEXT NOT NULL,
    on_unknown_minion TEXT NOT NULL CHECK (on_unknown_minion IN ('register', 'refuse')),
    tick INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE minions (
    master TEXT NOT NULL REFERENCES masters (id),
    id TEXT NOT NULL,
    registered_by TEXT NOT NULL,
    tick INTEGER NOT NULL,
    PRIMARY KEY (master, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE minion_collections (
    master TEXT NOT NULL,
    minion_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    collection_id TEXT NOT NULL REFERENCES collections (id),
    PRIMARY KEY (master, minion_id, position),
    UNIQUE (collection_id, master, minion_id),
    FOREIGN KEY (master, minion_id) REFERENCES minions (master, id) ON DELETE CASCADE
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL,
    sub TEXT NOT NULL,
    roles TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    tick INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE outbox (
    tick INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (tick, idx)
  ) STRICT;

  CREATE TABLE changes (
    tick INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (tick, key)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE idempotency (
    scope TEXT NOT NULL PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    response TEXT NOT NULL,
    tick INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX idempotency_by_expiry ON idempotency (expires_at_ms);

  CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    fence INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL
  ) STRICT;
  `,
  // purged: the value is gone for good. purge_tick: the last purge whose remains may still be in the file; 0: none.
  `
  ALTER TABLE pillar_versions ADD COLUMN purged INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE meta ADD COLUMN purge_tick INTEGER NOT NULL DEFAULT 0;
  `,
  // scoped_roles: a JSON list.
  `
  ALTER TABLE tokens ADD COLUMN scoped_roles TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE tokens ADD COLUMN last_used_at_ms INTEGER;
  `,
  `
  CREATE TABLE templates (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    schema TEXT NOT NULL,
    created_by TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    tick INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    template_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('created', 'running', 'succeeded', 'failed', 'cancelled')),
    minions TEXT NOT NULL,
    collections TEXT NOT NULL,
    created_by TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    ended_at_ms INTEGER,
    tick INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX tasks_by_template ON tasks (template_id, state, id);
  CREATE INDEX tasks_by_state ON tasks (state, id);
  `,
  // Imports: staged until they are applied in one transaction. Nothing reads these tables but the switch.
  `
  CREATE TABLE imports (
    id TEXT NOT NULL PRIMARY KEY,
    touched_at_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE import_rows (
    import_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    pid TEXT,
    tgt_type TEXT,
    tgt_id TEXT,
    name TEXT,
    pillarenv TEXT,
    value TEXT,
    is_secret INTEGER,
    expect_tick INTEGER,
    body TEXT,
    PRIMARY KEY (import_id, seq)
  ) STRICT;
  `,
  // accepted: there is such a minion.
  `
  CREATE TABLE inventories (
    master TEXT NOT NULL REFERENCES masters (id),
    id TEXT NOT NULL,
    facts TEXT NOT NULL,
    received_by TEXT NOT NULL,
    received_at_ms INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    tick INTEGER NOT NULL,
    PRIMARY KEY (master, id)
  ) STRICT;
  CREATE INDEX inventories_by_state ON inventories (accepted, master, id);
  `,
  // More kinds of versions; their values last, so that everything else is read without them. of_master: see PillarFilter.
  // history_floor: the newest deletion whose pillar is forgotten whole, and when that was.
  `
  CREATE TABLE versions_rebuilt (
    pid TEXT NOT NULL,
    tick INTEGER NOT NULL,
    op TEXT NOT NULL CHECK (op IN ('create', 'update', 'delete', 'move', 'restore')),
    tgt_type TEXT NOT NULL,
    tgt_id TEXT NOT NULL,
    name TEXT NOT NULL,
    pillarenv TEXT NOT NULL,
    is_secret INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    purged INTEGER NOT NULL DEFAULT 0,
    value TEXT NOT NULL,
    PRIMARY KEY (pid, tick)
  ) STRICT;
  INSERT INTO versions_rebuilt
    SELECT pid, tick, op, tgt_type, tgt_id, name, pillarenv, is_secret, created_by, updated_by, created_at_ms,
      updated_at_ms, purged, value FROM pillar_versions;
  DROP TABLE pillar_versions;
  ALTER TABLE versions_rebuilt RENAME TO pillar_versions;
  CREATE INDEX pillar_versions_by_env ON pillar_versions (pillarenv, pid);

  ALTER TABLE pillars ADD COLUMN of_master TEXT GENERATED ALWAYS AS (
    iif(
      tgt_type = 'minion' AND substr(pillarenv, 1, length(tgt_id) + 18) = 'minion_id:' || tgt_id || ';master:',
      substr(pillarenv, length(tgt_id) + 19),
      NULL
    )
  ) VIRTUAL;
  CREATE INDEX pillars_by_master ON pillars (of_master, pid) WHERE of_master IS NOT NULL;

  ALTER TABLE meta ADD COLUMN history_floor INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE meta ADD COLUMN history_floor_ms INTEGER NOT NULL DEFAULT 0;
  `,
  // kid: the key a value is sealed under. closed_kids: a JSON list of keys no write may bring in. rewrap: see RewrapProgress.
  `
  ALTER TABLE pillars ADD COLUMN kid TEXT GENERATED ALWAYS AS (
    iif(is_secret = 1, json_extract(value, '$."$enc".kid'), NULL)
  ) VIRTUAL;
  ALTER TABLE pillar_versions ADD COLUMN kid TEXT GENERATED ALWAYS AS (
    iif(is_secret = 1, json_extract(value, '$."$enc".kid'), NULL)
  ) VIRTUAL;
  ALTER TABLE import_rows ADD COLUMN kid TEXT GENERATED ALWAYS AS (
    iif(is_secret = 1, json_extract(value, '$."$enc".kid'), NULL)
  ) VIRTUAL;
  CREATE INDEX pillars_by_kid ON pillars (kid, pid, tick) WHERE kid IS NOT NULL;
  CREATE INDEX pillar_versions_by_kid ON pillar_versions (kid, pid, tick) WHERE kid IS NOT NULL;
  CREATE INDEX import_rows_by_kid ON import_rows (kid) WHERE kid IS NOT NULL;

  ALTER TABLE meta ADD COLUMN closed_kids TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE meta ADD COLUMN rewrap TEXT;
  `,
  // rule: canonical JSON. by_rule: 1 where the membership is by it alone.
  `
  ALTER TABLE collections ADD COLUMN rule TEXT;
  ALTER TABLE minion_collections ADD COLUMN by_rule INTEGER NOT NULL DEFAULT 0;
  `,
  // types: canonical JSON. enrolment_ids: a JSON list.
  `
  CREATE TABLE services (
    id TEXT NOT NULL PRIMARY KEY,
    types TEXT NOT NULL,
    enrolment_ids TEXT NOT NULL,
    tick INTEGER NOT NULL
  ) STRICT;
  `,
];

/** The schema this program reads and writes. */
export const SCHEMA_VERSION = MIGRATIONS.length;
