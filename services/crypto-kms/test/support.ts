import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  AUDIT_STREAM,
  type AuditEvent,
  BOOTSTRAP_SUB,
  ColonnadeError,
  decodeAuditMessage,
  deriveGrantKey,
  GRANT_AUDIENCE,
  type GrantAct,
  type GrantedEndpoint,
  grantResource,
  startCall,
  type Ungranted,
} from '@colonnade/contracts';
import { createLogger } from '@colonnade/service-kit';
import { SignJWT } from 'jose';
import type { z } from 'zod';
import { startRealBus } from '../../../test/support/real-bus.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { createKms, readKmsConfig } from '../src/index.ts';

export const KEK_B64 = randomBytes(32).toString('base64');
export const call = (budgetMs = 5000) => startCall(budgetMs);

/** Asserts that a request is answered with this error code. */
export async function rejects(work: Promise<unknown>, code: string): Promise<void> {
  await assert.rejects(work, (thrown: unknown) => {
    assert.ok(thrown instanceof ColonnadeError, String(thrown));
    assert.equal(thrown.code, code, thrown.message);
    return true;
  });
}

/** An API token as pillar-api makes them. */
export function makeApiToken(): { token: string; id: string } {
  const id = randomBytes(8).toString('hex');
  return { token: `col_${id}_${randomBytes(32).toString('base64url')}`, id };
}

export type GrantClaims = {
  sub: string;
  act: GrantAct;
  res: string;
  jti?: string;
  iat?: number;
  exp?: number;
  aud?: string;
};

/** A request with a grant for exactly it, of whoever has this API token. */
export async function withGrant<Req extends z.ZodType>(
  holder: { token: string; sub: string },
  endpoint: GrantedEndpoint<Req>,
  message: Ungranted<Req>,
): Promise<z.output<Req>> {
  const claims = { sub: holder.sub, act: endpoint.grant, res: grantResource(endpoint, message) };
  return { ...message, grant: await signGrant(holder.token, claims) } as z.output<Req>;
}

/** A grant as pillar-api makes them while it has the user's token in hand. */
export async function signGrant(apiToken: string, claims: GrantClaims): Promise<string> {
  const iat = claims.iat ?? Math.floor(Date.now() / 1000);
  const body = { jti: randomUUID(), aud: GRANT_AUDIENCE, ...claims, iat, exp: claims.exp ?? iat + 30 };
  return new SignJWT(body)
    .setProtectedHeader({ alg: 'HS256', kid: apiToken.split('_')[1] as string })
    .sign(deriveGrantKey(apiToken));
}

/** A real bus, a state folder and the token file of a first admin; `start` runs a KMS on them. */
export async function prepareKms() {
  const stack = new AsyncDisposableStack();
  const dir = stack.use(await tempDir('kms'));
  const bus = stack.use(await startRealBus());
  const admin = makeApiToken();
  const bootstrapFile = path.join(dir.path, 'bootstrap-token');
  await writeFile(bootstrapFile, `${admin.token}\n`, { mode: 0o600 });
  const env = {
    PILLARS_KEK_B64: KEK_B64,
    KMS_STATE_DIR: path.join(dir.path, 'state'),
    BOOTSTRAP_TOKEN_FILE: bootstrapFile,
    NATS_URL: bus.nats.url,
    NATS_NKEY_SEED: bus.nkeySeedOf('crypto-kms'),
    OPS_PORT: '0',
  };
  const logLines: string[] = [];
  const logger = createLogger({
    service: 'crypto-kms',
    level: 'debug',
    destination: { write: (line) => void logLines.push(line) },
  });
  return {
    bus,
    admin,
    /** A request with a grant of the first admin's. */
    granted: <Req extends z.ZodType>(endpoint: GrantedEndpoint<Req>, message: Ungranted<Req>) =>
      withGrant({ token: admin.token, sub: BOOTSTRAP_SUB }, endpoint, message),
    env,
    dir: dir.path,
    stateDir: env.KMS_STATE_DIR,
    logLines,
    /** Every record that is stored now; those of seal and open may still be under way when their answer is here. */
    async records(): Promise<AuditEvent[]> {
      const witness = await bus.witness();
      const info = await witness.request(`$JS.API.STREAM.INFO.${AUDIT_STREAM}`);
      const { messages } = info.json<{ state: { messages: number } }>().state;
      const records: AuditEvent[] = [];
      for (let seq = 1; seq <= messages; seq += 1) {
        const answer = await witness.request(
          `$JS.API.STREAM.MSG.GET.${AUDIT_STREAM}`,
          JSON.stringify({ seq }),
        );
        const { data } = answer.json<{ message: { data: string } }>().message;
        records.push(...decodeAuditMessage(Buffer.from(data, 'base64')));
      }
      await witness.close();
      return records;
    },
    async start(changes: Record<string, string | undefined> = {}) {
      return stack.use(await createKms(readKmsConfig({ ...env, ...changes }), { logger }));
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export type PreparedKms = Awaited<ReturnType<typeof prepareKms>>;
