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

/** Reveal and verify: one sealed value, with a grant for exactly its AAD. */
export function openRoutes(keys: Keys, guard: GrantGuard): Route[] {
  const open = async (context: OpenContext, enc: Value) => {
    checkOpenContext(context);
    return openValue(keys, aadOf(context), enc);
  };
  const what = (grant: string, context: OpenContext) => ({
    act: 'reveal' as const,
    ...{ grant, resource: aadOf(context), reveals: [context], objectRef: pillarRef(context) },
  });
  return [
    route(kmsOpenForApi, async ({ grant, context, enc }, call) => {
      const guarded = { endpoint: kmsOpenForApi, call, ...what(grant, context) };
      return { value: await guard(guarded, onRecord, () => open(context, enc)) };
    }),
    route(kmsVerifyForApi, async ({ grant, context, enc }, call) => {
      const guarded = { endpoint: kmsVerifyForApi, call, verb: 'verify', ...what(grant, context) };
      await guard(guarded, onRecord, () => open(context, enc));
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
    route(kmsIssueMaster, ({ grant, master, lifetime_s }, call) => {
      const objectRef = { resource: 'masters', name: master, subresource: 'token' };
      const what = {
        endpoint: kmsIssueMaster,
        call,
        act: 'master.issue',
        grant,
        resource: master,
        objectRef,
      } as const;
      return guard(what, changeOnRecord, async () => {
        const { token, jti, expiresAtMs } = await tokens.issue(master, lifetime_s);
        return { token, jti, expires_at_ms: expiresAtMs };
      });
    }),
    route(kmsRevokeIdentity, ({ grant, jti }, call) => {
      const objectRef = { resource: 'identities', name: jti };
      const what = {
        endpoint: kmsRevokeIdentity,
        call,
        act: 'master.revoke',
        grant,
        resource: jti,
        objectRef,
      } as const;
      return guard(what, changeOnRecord, async () => {
        await revocations.revoke(jti, nowS() + LONGEST_LIFE_S);
        return {};
      });
    }),
  ];
}

/** The registry of grant keys. */
export function readerRoutes(readers: Readers, guard: GrantGuard): Route[] {
  return [
    route(kmsPutReader, ({ grant, ...reader }, call) => {
      const objectRef = { resource: 'readers', name: reader.token_id };
      const what = {
        endpoint: kmsPutReader,
        call,
        act: 'reader.put',
        grant,
        resource: reader.token_id,
        objectRef,
      } as const;
      return guard(what, changeOnRecord, async () => {
        await readers.put({ ...reader, origin: 'api' });
        return {};
      });
    }),
    route(kmsDeleteReader, ({ grant, token_id }, call) => {
      const objectRef = { resource: 'readers', name: token_id };
      const what = {
        endpoint: kmsDeleteReader,
        call,
        act: 'reader.delete',
        grant,
        resource: token_id,
        objectRef,
      } as const;
      return guard(what, changeOnRecord, async () => ({ deleted: await readers.remove(token_id) }));
    }),
  ];
}
