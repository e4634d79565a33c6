import { setTimeout as sleep } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';
import { backoffMs } from '../rules/backoff.ts';
import { type KubeClient, type KubeStatus, kubeError } from './client.ts';
import { createCopy } from './copy.ts';
import type { KubeList, KubeObject } from './objects.ts';

export type ReflectorOptions<T> = {
  path: string;
  /** Of one named object of every namespace: `metadata.name=ingress-tls`. */
  fieldSelector?: string;
  /** What is kept of an object; what is not kept is not in memory. */
  keep: (object: KubeObject) => T;
  /** An object appeared, changed or went. */
  onChange: (key: string) => void;
  /** Everything is listed anew after so long, with jitter. */
  relistMs: number;
  /** A watch that says nothing for so long, not even a bookmark, is taken for dead. */
  silenceMs: number;
  watcher: ReflectorWatcher;
};

export type ReflectorWatcher = {
  relisted(path: string): void;
  watchSilent(path: string): void;
  watchFailed(path: string, error: ColonnadeError): void;
};

/** A copy of some objects of the API server, kept up to date. Keys are `namespace/name`, or the name alone. */
export type Reflector<T> = AsyncDisposable & {
  get(key: string): T | undefined;
  entries(): IterableIterator<[string, T]>;
  /** Resolves once everything has been listed for the first time; rejects, `unavailable`, when it is disposed before. */
  synced: Promise<void>;
  isSynced(): boolean;
  /** As `synced`, but rejects, `forbidden`, as long as the API server does not let us list. */
  listed(): Promise<void>;
  /** Takes an object that an answer of the API server showed, unless the watch has come past it already. */
  note(object: KubeObject): void;
};

const PAGE = '500';
const WATCH_SECONDS = 290;
const SHORT_MS = 1000;

/** Lists and watches until disposed. A 429 just after a CRD was made, a 410, a broken connection: it goes on. */
export function startReflector<T>(client: KubeClient, options: ReflectorOptions<T>): Reflector<T> {
  const copy = createCopy(options);
  const stopped = new AbortController();
  const first = Promise.withResolvers<void>();
  // Nobody may be waiting for it.
  first.promise.catch(() => undefined);
  const refused = Promise.withResolvers<never>();
  refused.promise.catch(() => undefined);
  let synced = false;
  const sink: Sink = {
    ...copy,
    replace(objects, version) {
      copy.replace(objects, version);
      synced = true;
      first.resolve();
    },
  };
  const watcher: ReflectorWatcher = {
    ...options.watcher,
    watchFailed(path, error) {
      options.watcher.watchFailed(path, error);
      if (error.code === 'forbidden') refused.reject(error);
    },
  };
  const done = run(client, { ...options, watcher }, sink, stopped.signal);
  return {
    get: copy.get,
    entries: copy.entries,
    synced: first.promise,
    isSynced: () => synced,
    listed: () => Promise.race([first.promise, refused.promise]),
    note: copy.note,
    async [Symbol.asyncDispose]() {
      stopped.abort();
      // A pass that waits for the first list would wait for ever, and its object with it.
      first.reject(new ColonnadeError('unavailable', `${options.path} is not watched any more`));
      await done;
    },
  };
}

type Sink = {
  put(object: KubeObject): void;
  drop(object: KubeObject): void;
  /** The watch has come as far as this version. */
  pass(version: string): void;
  replace(objects: readonly KubeObject[], version: string): void;
};

async function run<T>(
  client: KubeClient,
  options: ReflectorOptions<T>,
  sink: Sink,
  stop: AbortSignal,
): Promise<void> {
  for (let failures = 0; !stop.aborted; ) {
    try {
      const { version, objects } = await listAll(client, options, stop);
      sink.replace(objects, version);
      options.watcher.relisted(options.path);
      failures = 0;
      await watchFrom(client, options, sink, version, stop);
    } catch (thrown) {
      if (stop.aborted) return;
      failures += 1;
      const error =
        thrown instanceof ColonnadeError
          ? thrown
          : new ColonnadeError('internal', 'a watch failed', { cause: thrown });
      // Gone: the list comes again at once.
      if (error.code === 'expired') continue;
      options.watcher.watchFailed(options.path, error);
      await sleep(backoffMs(failures, { firstMs: 200, maxMs: 30_000 }), undefined, { signal: stop }).catch(
        () => undefined,
      );
    }
  }
}

async function listAll<T>(
  client: KubeClient,
  { path, fieldSelector }: ReflectorOptions<T>,
  signal: AbortSignal,
): Promise<{ version: string; objects: readonly KubeObject[] }> {
  const objects: KubeObject[] = [];
  const query: Record<string, string> = {
    limit: PAGE,
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
  for (;;) {
    const page = await client.request<KubeList<KubeObject>>('GET', path, { query, signal });
    objects.push(...page.items);
    if (!page.metadata.continue) return { version: page.metadata.resourceVersion, objects };
    query.continue = page.metadata.continue;
  }
}

type WatchEvent = {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: KubeObject & KubeStatus;
};

/** Watches, over and over, until the next list is due. */
async function watchFrom<T>(
  client: KubeClient,
  options: ReflectorOptions<T>,
  sink: Sink,
  from: string,
  stop: AbortSignal,
): Promise<void> {
  const relistAt = performance.now() + options.relistMs * (0.9 + Math.random() / 5);
  let version = from;
  const onEvent = ({ type, object }: WatchEvent) => {
    if (type === 'ERROR') throw kubeError(`watch ${options.path}`, object.code ?? 500, object);
    version = object.metadata.resourceVersion;
    if (type === 'DELETED') sink.drop(object);
    else if (type !== 'BOOKMARK') sink.put(object);
    sink.pass(version);
  };
  for (let short = 0; !stop.aborted && performance.now() < relistAt; ) {
    const [startMs, began] = [performance.now(), version];
    const ended = await watchOnce(client, options, { version, onEvent, untilMs: relistAt }, stop);
    if (ended === 'silent') {
      options.watcher.watchSilent(options.path);
      return;
    }
    // One that ends at once and has said nothing, over and over: a balancer without an API server behind it.
    short = version === began && performance.now() - startMs < SHORT_MS ? short + 1 : 0;
    if (short > 0)
      await sleep(backoffMs(short, { firstMs: 200, maxMs: 30_000 }), undefined, { signal: stop }).catch(
        () => undefined,
      );
  }
}

/** One connection. @returns why it ended; what was said last stands in the caller's `version` */
async function watchOnce<T>(
  client: KubeClient,
  { path, fieldSelector, silenceMs }: ReflectorOptions<T>,
  { version, onEvent, untilMs }: { version: string; onEvent: (event: WatchEvent) => void; untilMs: number },
  stop: AbortSignal,
): Promise<'ended' | 'silent'> {
  const give = new AbortController();
  let lastMs = performance.now();
  let silent = false;
  let fault: unknown;
  const timer = setInterval(
    () => {
      const now = performance.now();
      silent = now - lastMs >= silenceMs;
      if (silent || now >= untilMs) give.abort();
    },
    Math.max(10, Math.min(silenceMs / 4, 1000)),
  );
  try {
    const query = {
      resourceVersion: version,
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(WATCH_SECONDS),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
    const onLine = (line: string) => {
      lastMs = performance.now();
      try {
        onEvent(JSON.parse(line) as WatchEvent);
      } catch (thrown) {
        fault = thrown;
        give.abort();
      }
    };
    await client.watch(path, query, onLine, AbortSignal.any([stop, give.signal]));
  } catch (thrown) {
    if (fault !== undefined) throw fault;
    if (!give.signal.aborted && !stop.aborted) throw thrown;
  } finally {
    clearInterval(timer);
  }
  if (fault !== undefined) throw fault;
  return silent ? 'silent' : 'ended';
}
