import { type Route, route } from '@colonnade/bus';
import {
  kmsDeleteReader,
  kmsIssueMaster,
  kmsOpenForApi,
  kmsPutReader,
  kmsRevokeIdentity,
  kmsVerifyForApi,
  type OpenContext,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { aadOf, checkOpenContext } from './context.ts';
import { type Keys, openValue } from './envelope.ts';
import type { GrantGuard } from './grant-guard.ts';
import type { MasterTokens } from './master-token.ts';
import type { Readers } from './readers.ts';
import type { Revocations } from './revocations.ts';
import { changeOnRecord, onRecord, pillarRef } from './trail.ts';

/** The longest life of an identity, seconds: how long a revoked jti has to be remembered at most. */
const LONGEST_LIFE_S = 366 * 86_400 + 60;

/** Reveal and verify: one sealed value, with a grant for exactly it in exactly this place. */
export function openRoutes(keys: Keys, guard: GrantGuard): Route[] {
  const open = async ({ context, enc }: { context: OpenContext; enc: Value }) => {
    checkOpenContext(context);
    return openValue(keys, aadOf(context), enc);
  };
  const what = ({ context }: { context: OpenContext }) => ({
    ...{ reveals: [context], objectRef: pillarRef(context) },
  });
  return [
    route(kmsOpenForApi, async (message, call) => {
      const guarded = { endpoint: kmsOpenForApi, message, call, ...what(message) };
      return { value: await guard(guarded, onRecord, () => open(message)) };
    }),
    route(kmsVerifyForApi, async (message, call) => {
      const guarded = { endpoint: kmsVerifyForApi, message, call, verb: 'verify', ...what(message) };
      await guard(guarded, onRecord, () => open(message));
      return {};
    }),
  ];
}

/** Identities of masters. */
export function identityRoutes(
  tokens: MasterTokens,
  revocations: Revocations,
  guard: GrantGuard,
  nowS: () => number,
): Route[] {
  return [
    route(kmsIssueMaster, (message, call) => {
      const { master, lifetime_s } = message;
      const objectRef = { resource: 'masters', name: master, subresource: 'token' };
      return guard({ endpoint: kmsIssueMaster, message, call, objectRef }, changeOnRecord, async () => {
        const { token, jti, expiresAtMs } = await tokens.issue(master, lifetime_s);
        return { token, jti, expires_at_ms: expiresAtMs };
      });
    }),
    route(kmsRevokeIdentity, (message, call) => {
      const objectRef = { resource: 'identities', name: message.jti };
      return guard({ endpoint: kmsRevokeIdentity, message, call, objectRef }, changeOnRecord, async () => {
        await revocations.revoke(message.jti, nowS() + LONGEST_LIFE_S);
        return {};
      });
    }),
  ];
}

/** The registry of grant keys. */
export function readerRoutes(readers: Readers, guard: GrantGuard): Route[] {
  return [
    route(kmsPutReader, (message, call) => {
      const { grant: _, ...reader } = message;
      const objectRef = { resource: 'readers', name: reader.token_id };
      return guard({ endpoint: kmsPutReader, message, call, objectRef }, changeOnRecord, async () => {
        await readers.put({ ...reader, origin: 'api' });
        return {};
      });
    }),
    route(kmsDeleteReader, (message, call) => {
      const objectRef = { resource: 'readers', name: message.token_id };
      return guard({ endpoint: kmsDeleteReader, message, call, objectRef }, changeOnRecord, async () => ({
        deleted: await readers.remove(message.token_id),
      }));
    }),
  ];
}
