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
  /** `$name` stands for what an earlier answer gave; see `keep`. */
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string>>;
  body?: unknown;
  /** Sends If-Match with the ETag of this path, which is read first. */
  ifMatch?: string;
  /** Makes what must not be there yet: If-None-Match: *. */
  ifNoneMatch?: boolean;
  /** Keeps a field of the answer (a path with dots) under a name, for the examples that follow. */
  keep?: Readonly<Record<string, string>>;
  /** Why this one is shown and not run. */
  notRun?: string;
};

/** What `$name` is shown as in the document. */
export function shownSample(text: string): string {
  if (!text.startsWith('$')) return text;
  if (text.includes('clock')) return '42';
  return text.includes('jti') || text.includes('token')
    ? '0123456789abcdef'
    : '9b2d7f5e-3c1a-4e86-b0f4-6a8d5c2e7f10';
}
