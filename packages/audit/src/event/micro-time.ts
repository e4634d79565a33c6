/** The text of a second is made once: a merge asks for the time three times. */
let last = { second: Number.NaN, text: '' };

/** Now as RFC 3339 with microseconds, the form of Kubernetes' MicroTime. */
export function microTime(epochMs: number = performance.timeOrigin + performance.now()): string {
  const micros = Math.floor(epochMs * 1000);
  const second = Math.floor(micros / 1_000_000);
  if (second !== last.second) last = { second, text: new Date(second * 1000).toISOString().slice(0, 20) };
  return `${last.text}${String(micros - second * 1_000_000).padStart(6, '0')}Z`;
}
