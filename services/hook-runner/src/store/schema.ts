/** Entry i brings the file from version i to i + 1; entries are never changed once released. */
export const MIGRATIONS: readonly string[] = [
  `
  -- fence: number of the leader; whoever takes the lead raises it, and nobody writes under an older one.
  CREATE TABLE leader (id INTEGER PRIMARY KEY CHECK (id = 1), fence INTEGER NOT NULL) STRICT;
  INSERT INTO leader VALUES (1, 0);

  CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    event TEXT NOT NULL,
    subject TEXT NOT NULL,
    begun_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    status TEXT,
    fault TEXT
  ) STRICT;
  CREATE INDEX runs_by_time ON runs (begun_ms);

  -- pid, pid_birth: the process of a hook under way, so that the next leader can end it.
  CREATE TABLE results (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    hook TEXT NOT NULL,
    position INTEGER NOT NULL,
    pid INTEGER,
    pid_birth TEXT,
    result TEXT,
    PRIMARY KEY (run, hook)
  ) STRICT;
  CREATE INDEX results_under_way ON results (run) WHERE result IS NULL;
  `,
  // touches: whom changes concern that no generation has taken up to its end. policies: digest of what is in force.
  `
  CREATE TABLE touches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    touched TEXT NOT NULL,
    rewrite INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE policies (minion TEXT NOT NULL PRIMARY KEY, digest TEXT NOT NULL) STRICT;
  CREATE TABLE generations (id TEXT NOT NULL PRIMARY KEY, record TEXT NOT NULL) STRICT;
  `,
  // Minions whose policies were swapped by a generation that has not come to its end: the one that does tells of them.
  'CREATE TABLE swapped (minion TEXT NOT NULL PRIMARY KEY, facts TEXT NOT NULL) STRICT;',
  // owed: the generation whose node-finished hooks have not run for it yet; null: none has to run.
  'ALTER TABLE swapped ADD COLUMN owed TEXT;',
  // due_ms, tries: of a minion that failed, when it is tried again and how often it has failed. gone: its folder may go, its last hooks
  // have ended. lost: since when folders are of nobody although no deletion was told.
  `
  ALTER TABLE touches ADD COLUMN due_ms INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE touches ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE touches ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE lost (minion TEXT NOT NULL PRIMARY KEY, since_ms INTEGER NOT NULL) STRICT;
  `,
  // What is touched again is found, and not noted twice.
  'CREATE INDEX touches_by_whom ON touches (touched);',
];
