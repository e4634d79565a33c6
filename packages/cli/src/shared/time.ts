import { usageError } from '../exit-codes.ts';

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * RFC 3339 in UTC of a time as a person writes it: RFC 3339, or a span before now such as `90m`, `12h`, `7d`.
 * @throws ColonnadeError `misconfigured` naming the option
 */
export function timeOf(option: string, text: string | undefined, nowMs: number): string | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,6})([smhd])$/u.exec(text) ?? [];
  const ms = count === undefined ? Date.parse(text) : nowMs - Number(count) * (UNIT_MS[unit ?? ''] ?? 0);
  if (!Number.isNaN(ms)) return new Date(ms).toISOString();
  throw usageError(`--${option}: "${text}" is no time such as 2026-01-31T12:00:00Z or 12h`);
}

/** A clock, or a time as timeOf reads it; as the API takes it. @throws ColonnadeError `misconfigured` */
export function momentOf(option: string, text: string): bigint | string {
  return /^\d{1,15}$/u.test(text) ? BigInt(text) : (timeOf(option, text, Date.now()) ?? '');
}

export const TIME_OPTIONS = {
  since: { value: 'TIME', help: 'not before: RFC 3339, or a span such as 90m, 12h, 7d' },
  until: { value: 'TIME', help: 'not after' },
} as const;
