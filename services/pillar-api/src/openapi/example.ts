/**
 * What a route is for, and one request that works. All examples are run as a test, in the order of the list: so each
 * may use what those before it made.
 */
export type Example = {
  /** `POST /pillars` */
  route: string;
  summary: string;
  /** Of the answer. */
  status: number;
  /** Of an answer of the same kind, when what the route makes is there already. */
  otherStatus?: number;
  /** What the test's estate answers instead: there it cannot be done. */
  refused?: number;
  /** `$name` stands for what an earlier answer gave; see `keep`. */
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string>>;
  /** A text that is `$name` and nothing else stands for what was kept, a number where that is one. */
  body?: Readonly<Record<string, unknown>>;
  /** Of a body that is no JSON. */
  text?: { type: string; body: string };
  /** What it shows comes about by itself a moment after what earlier examples did. */
  later?: true;
  /** Sends If-Match with the ETag of this path, which is read first. */
  ifMatch?: string;
  /** Comes with this token, which was kept, in place of the reader's own. */
  bearer?: string;
  /** Makes what must not be there yet: If-None-Match: *. */
  ifNoneMatch?: boolean;
  /** Keeps a field of the answer (a path with dots) under a name, for the examples that follow. */
  keep?: Readonly<Record<string, string>>;
};

/** A body with what `$name` stands for; `shown` of the document, or what was kept. */
export function fillBody(
  body: Readonly<Record<string, unknown>>,
  lookUp: (text: string) => unknown,
): Record<string, unknown> {
  const entries = Object.entries(body).map(([key, value]): [string, unknown] => {
    return [key, typeof value === 'string' && value.startsWith('$') ? lookUp(value) : value];
  });
  return Object.fromEntries(entries);
}

/** What `$name` is shown as in a body: a clock is a number. */
export function shownInBody(text: string): unknown {
  return text.includes('clock') ? Number(shownSample(text)) : shownSample(text);
}

/** What `$name` is shown as in the document. */
export function shownSample(text: string): string {
  if (!text.startsWith('$')) return text;
  if (text.includes('clock')) return '42';
  if (text.includes('generation')) return '2026-01-31T12:00:00.000Z';
  return text.includes('jti') || text.includes('token')
    ? '0123456789abcdef'
    : '9b2d7f5e-3c1a-4e86-b0f4-6a8d5c2e7f10';
}
