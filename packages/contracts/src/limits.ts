/**
 * Every limit of Colonnade. They agree with each other: a value fits its sealed form, that fits an audit record
 * with request and response, and that fits one NATS message (limits.test.ts proves the sums).
 */
export const LIMITS = {
  /** Canonical bytes of one pillar value. */
  valueBytes: 256 * 1024,
  /** Levels of lists and objects in one pillar value. */
  valueDepth: 32,
  /** Levels of lists and objects in any message; a value sits a few levels below the top. */
  messageDepth: 48,
  /** UTF-8 bytes of a pillar name. */
  nameBytes: 255,
  /** UTF-8 bytes of a minion, collection, template or task id, a user sub, an environment name. */
  idBytes: 128,
  /** UTF-8 bytes of a whole pillarenv request string. */
  pillarenvBytes: 4096,
  /** Environments in one pillarenv request. */
  envsPerRequest: 64,
  /** Levels of the collection tree. */
  collectionDepth: 32,
  /** Collections a minion may be a direct member of. */
  collectionsPerMinion: 64,
  /** Environments listed for one master. */
  envsPerMaster: 64,
  /** Minions, collections and pillars of one task. */
  minionsPerTask: 500,
  collectionsPerTask: 64,
  pillarsPerTask: 200,
  /** Canonical bytes of a template's JSON Schema. */
  schemaBytes: 128 * 1024,
  /** Tokens of one master that are valid at the same time. */
  tokensPerMaster: 16,
  /** Scoped roles of one API token, and entries in each list of a scope. */
  scopedRoles: 16,
  scopeEntries: 64,
  /** Characters of a bearer token of an OpenID Connect issuer, and of a group's name; lines of the file of their roles. */
  oidcTokenChars: 8192,
  oidcGroupChars: 512,
  oidcGroupRoles: 1000,
  /** Bytes of the pillars a workload gets at once. */
  ownPillarsBytes: 8 * 1024 * 1024,
  /** Characters of a workload's token. */
  workloadTokenChars: 4096,
  /** Open streams of changes of one process of pillar-api, and of one caller. */
  changeStreams: 256,
  changeStreamsPerCaller: 8,
  /** What may wait for a reader of changes that is slow, bytes; beyond that his stream ends. */
  changeBacklogBytes: 1024 * 1024,
  /** Body of an HTTP request, bytes. */
  httpBodyBytes: 512 * 1024,
  /** Rows in one page of a list. */
  pageRows: 500,
  /** Pillars moved or restored in one transaction, and bytes of their values: it holds up every other write. */
  batchPillars: 200,
  batchBytes: 1024 * 1024,
  /** Changes supposed in one preview. */
  previewChanges: 200,
  /** Versions looked through to restore a scope. */
  scopeVersions: 20_000,
  /** Differences shown between two values, and bytes of them. */
  diffChanges: 1000,
  diffBytes: 1024 * 1024,
  /** Minions a master may register by itself, unless a setting says otherwise; and new ones of a master in a minute. */
  minionsPerMaster: 10_000,
  minionsPerMinute: 600,
  /** Items in one KMS batch. */
  kmsBatchItems: 500,
  /** Bytes of one KMS request or answer; callers split batches to stay below. */
  kmsBatchBytes: 3 * 1024 * 1024,
  /** Minions in one request to compile; minions in one page of those a change touches. */
  compileMinions: 64,
  /** Pillars in one answer to compile, bytes, unless the first alone is larger; and the largest that is compiled. */
  compileBytes: 1024 * 1024,
  compilePillarBytes: 3584 * 1024,
  /** Minions in one entry of a master's refresh stream; entries kept in it, read or not. */
  refreshMinions: 500,
  refreshEntries: 1000,
  /** Minions shown of one generation, of those it updated and of those that failed; and bytes of each list. */
  generationMinions: 5000,
  generationListBytes: 1536 * 1024,
  /** A text of an inventory, bytes; addresses or roles in it. */
  inventoryTextBytes: 1024,
  inventoryItems: 64,
  /** Inventories of one caller that were refused and are an event, in a minute and each process. */
  failedInventoriesPerMinute: 60,
  /** Levels of the rule of a collection; conditions in it, and values of one. */
  ruleDepth: 4,
  ruleConditions: 64,
  /** One parameter of a hook, bytes: Linux takes 128 KiB for a variable with its name. */
  hookParameterBytes: 96 * 1024,
  /** `max_payload` of NATS, bytes. */
  natsPayloadBytes: 4 * 1024 * 1024,
  /** Of a message that no audit backend takes, bytes kept in its dead letter. */
  auditDeadPayloadBytes: 2 * 1024 * 1024,
  /** Canonical bytes of the data of one event of a service: a hook gets it in a variable. Of a refused one, bytes kept. */
  serviceEventBytes: 64 * 1024,
  serviceEventDeadBytes: 4 * 1024,
  /** Types one service may publish; its enrolments at the same time. */
  typesPerService: 64,
  enrolmentsPerService: 16,
  /** One event handed in by a kube-apiserver, bytes; beyond that it loses its bodies. */
  auditIngestEventBytes: 4 * 1024 * 1024 - 16 * 1024,
  /** One request on the Redis bridge, bytes. */
  bridgeRequestBytes: 16 * 1024,
  /** One reply on the Redis bridge, bytes. */
  bridgeReplyBytes: 8 * 1024 * 1024,
  /** Unanswered requests of one master before `overloaded`. */
  bridgeQueueLength: 5000,
  /** Memory of one master's request stream in Redis, bytes; over it the stream is made anew. */
  bridgeQueueBytes: 128 * 1024 * 1024,
  /** `proto-max-bulk-len` of Redis: one argument of a command, bytes. The largest is a reply. */
  redisBulkBytes: 9 * 1024 * 1024,
  /** `client-query-buffer-limit` of Redis: what one client has sent of a command that is not complete, bytes. */
  redisQueryBufferBytes: 10 * 1024 * 1024,
  /** `maxmemory-clients` of Redis: all clients' buffers, and so one whole command, however many arguments it has. */
  redisClientsBytes: 128 * 1024 * 1024,
  /** Entries a merger takes from one stream at once; with the line above, what a hostile stream can make it load. */
  bridgeReadEntries: 4,
  /** Time budget a master may ask for, milliseconds. */
  bridgeTtlMinMs: 100,
  bridgeTtlMaxMs: 10_000,
  /** An Idempotency-Key header, characters; kept for this long, milliseconds. */
  idempotencyKeyChars: 255,
  idempotencyKeepMs: 24 * 60 * 60 * 1000,
  /** Body of an import, bytes; one record of it (a line, or a YAML document), bytes. */
  importBytes: 512 * 1024 * 1024,
  importRecordBytes: 512 * 1024,
  /** Records of an import: the switch of so many is one transaction. */
  importRecords: 100_000,
  /** Changes of an import that are staged at a time. */
  importStageRows: 200,
} as const;
