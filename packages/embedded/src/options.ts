import { existsSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ColonnadeError } from '@colonnade/contracts';

export type StartOptions = {
  once: boolean;
  data: string | undefined;
  mergers: number;
  httpPort: number;
  /** Absolute. */
  auditPolicy: string | undefined;
  auditWebhook: string | undefined;
  json: boolean;
  help: boolean;
};

export const usage = `npm start [-- OPTIONS]: Colonnade on this host, with a sample estate

  --once                show the sample minion's pillar and exit
  --data DIR            keep everything in DIR (default: .colonnade/data; with --once a temporary folder)
  --mergers N           processes that answer the masters, 1 to 16 (default: 1)
  --port N              HTTP port of pillar-api on 127.0.0.1 (default: any free one)
  --audit-policy FILE   what goes on record (audit.k8s.io/v1 Policy; default: metadata of everything); read again
                        when it changes
  --audit-webhook FILE  kubeconfig file of a webhook that gets the records beside the audit log; read again after a
                        delivery failed
  --json                print the result as one JSON document, everything else to stderr (npm start --silent -- --json)
  -h, --help            this text

Examples
  npm start
  npm start -- --once
  npm start -- --audit-policy policy.yaml --audit-webhook webhook.kubeconfig
  npm start -- --mergers 2 --port 8080 --data /var/lib/colonnade

Exit codes: 0 done or stopped with Ctrl-C, 1 a part did not start, 2 unknown or wrong option, 130 interrupted while starting
`;

/** @throws ColonnadeError `bad_request` naming the option at fault */
export function readOptions(args: readonly string[]): StartOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        once: { type: 'boolean', default: false },
        data: { type: 'string' },
        mergers: { type: 'string', default: '1' },
        port: { type: 'string', default: '0' },
        'audit-policy': { type: 'string' },
        'audit-webhook': { type: 'string' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.data === '') throw new ColonnadeError('bad_request', '--data must name a folder');
    return {
      once: values.once,
      data: values.data,
      mergers: count('--mergers', values.mergers, 1, 16),
      httpPort: count('--port', values.port, 0, 65_535),
      auditPolicy: file('--audit-policy', values['audit-policy']),
      auditWebhook: file('--audit-webhook', values['audit-webhook']),
      json: values.json,
      help: values.help,
    };
  } catch (thrown) {
    if (thrown instanceof ColonnadeError) throw thrown;
    throw new ColonnadeError('bad_request', thrown instanceof Error ? thrown.message : 'wrong options');
  }
}

/** Services do not run in the folder the command was given in. */
function file(name: string, given: string | undefined): string | undefined {
  if (given === undefined) return undefined;
  if (!existsSync(given)) throw new ColonnadeError('bad_request', `${name} ${given}: there is no such file`);
  return path.resolve(given);
}

function count(name: string, text: string, min: number, max: number): number {
  const value = /^\d{1,5}$/u.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new ColonnadeError('bad_request', `${name} must be a whole number from ${min} to ${max}`);
}
