import type { Bus } from '@colonnade/bus';
import {
  type Call,
  ColonnadeError,
  type Endpoint,
  type ErrorCode,
  encodeTree,
  type GrantedEndpoint,
  kmsCheck,
  kmsDeleteReader,
  kmsDestroyKey,
  kmsEnrol,
  kmsIssueMaster,
  kmsIssueTask,
  kmsJwks,
  kmsListKeys,
  kmsMac,
  kmsMakeEnrolment,
  kmsOpenForApi,
  kmsOpenForWorkload,
  kmsPutReader,
  kmsRenewWorkload,
  kmsReseal,
  kmsRevokeIdentity,
  kmsRewrap,
  kmsRotateKey,
  kmsSeal,
  kmsSetMinVersion,
  kmsUndestroyKey,
  kmsVerifyForApi,
  type PillarContext,
  type Ungranted,
  zEnc,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { z } from 'zod';
import type { Principal } from './auth/authenticate.ts';
import { checkCount, requireOpening, toWire } from './kms-check.ts';

/** Whoever asks, with an API token of his own. */
type Granter = Pick<Principal, 'granted'>;

/** A sealed value that is to stand somewhere else. */
export type Relocation = { from: PillarContext; to: PillarContext; value: Value };
type Resealed = { ok: true; result: Value } | { ok: false; error: { code: ErrorCode; message: string } };

/** crypto-kms as pillar-api uses it. No answer within the call's time is `kms_unavailable`. */
export type Kms = ReturnType<typeof createKms>;

export function createKms(bus: Pick<Bus, 'request'>) {
  async function ask<Req extends z.ZodType, Res extends z.ZodType>(
    endpoint: Endpoint<Req, Res>,
    message: z.output<Req>,
    call: Call,
  ): Promise<z.output<Res>> {
    try {
      return await bus.request(endpoint, message, call);
    } catch (thrown) {
      throw asKmsError(thrown);
    }
  }
  // Without a grant of the user's it answers nothing; and he may be one who can make none.
  async function askFor<Req extends z.ZodType, Res extends z.ZodType>(
    by: Granter,
    endpoint: GrantedEndpoint<Req, Res>,
    message: Ungranted<Req>,
    call: Call,
  ): Promise<z.output<Res>> {
    return ask(endpoint, (await by.granted(endpoint, message)) as z.output<Req>, call);
  }
  const check = (message: z.output<typeof kmsCheck.request>, call: Call) => ask(kmsCheck, message, call);
  return {
    /** Given is what is to be stored, and opens. @throws ColonnadeError when it cannot be sealed, or does not open */
    async seal(context: PillarContext, value: Value, call: Call): Promise<Value> {
      const [sealed] = await this.sealAll([{ context, value }], call);
      return sealed as Value;
    },
    /** In the order they were given. @throws as seal, for one of them */
    async sealAll(values: readonly { context: PillarContext; value: Value }[], call: Call): Promise<Value[]> {
      const asked = values.map(({ context, value }) => ({ context: toWire(context), value }));
      const { items } = await ask(kmsSeal, { items: asked }, call);
      checkCount(items, values);
      const sealed = items.map((item, i) => {
        if (!item.ok) throw new ColonnadeError(item.error.code, item.error.message);
        return { context: values[i]?.context as PillarContext, value: encodeTree(zEnc, item.result) };
      });
      await requireOpening({ check }, sealed, call);
      return sealed.map(({ value }) => value);
    },
    async open(by: Granter, context: PillarContext, enc: Value, call: Call): Promise<Value> {
      return (await askFor(by, kmsOpenForApi, { context: toWire(context), enc }, call)).value;
    },
    async verify(by: Granter, context: PillarContext, enc: Value, call: Call): Promise<void> {
      await askFor(by, kmsVerifyForApi, { context: toWire(context), enc }, call);
    },
    /** As sealAll, but each of them has its own error. */
    async reseal(by: Granter, moves: readonly Relocation[], call: Call): Promise<Resealed[]> {
      const asked = moves.map(({ from, to, value }) => ({ from: toWire(from), to: toWire(to), enc: value }));
      const { items } = await askFor(by, kmsReseal, { items: asked }, call);
      checkCount(items, moves);
      const done = items.map((item) =>
        item.ok ? { ok: true as const, result: encodeTree(zEnc, item.result) } : item,
      );
      const sealed = done.flatMap((item, i) =>
        item.ok ? [{ context: moves[i]?.to as PillarContext, value: item.result }] : [],
      );
      await requireOpening({ check }, sealed, call);
      return done;
    },
    check,
    async mac(sha256Hex: string, call: Call): Promise<string> {
      return (await ask(kmsMac, { sha256_hex: sha256Hex }, call)).mac_hex;
    },
    putReader: (by: Granter, reader: Ungranted<typeof kmsPutReader.request>, call: Call) =>
      askFor(by, kmsPutReader, reader, call),
    deleteReader: (by: Granter, tokenId: string, call: Call) =>
      askFor(by, kmsDeleteReader, { token_id: tokenId }, call),
    issueMaster: (by: Granter, asked: Ungranted<typeof kmsIssueMaster.request>, call: Call) =>
      askFor(by, kmsIssueMaster, asked, call),
    revokeIdentity: (by: Granter, jti: string, call: Call) => askFor(by, kmsRevokeIdentity, { jti }, call),
    issueTask: (by: Granter, asked: Ungranted<typeof kmsIssueTask.request>, call: Call) =>
      askFor(by, kmsIssueTask, asked, call),
    renewWorkload: (message: z.output<typeof kmsRenewWorkload.request>, call: Call) =>
      ask(kmsRenewWorkload, message, call),
    makeEnrolment: (by: Granter, asked: Ungranted<typeof kmsMakeEnrolment.request>, call: Call) =>
      askFor(by, kmsMakeEnrolment, asked, call),
    enrol: (token: string, call: Call) => ask(kmsEnrol, { token }, call),
    openForWorkload: (message: z.output<typeof kmsOpenForWorkload.request>, call: Call) =>
      ask(kmsOpenForWorkload, message, call),
    async listKeys(call: Call) {
      return (await ask(kmsListKeys, {}, call)).keys;
    },
    async rotateKey(by: Granter, name: string, call: Call) {
      return (await askFor(by, kmsRotateKey, { name }, call)).version;
    },
    rewrap: (message: z.output<typeof kmsRewrap.request>, call: Call) => ask(kmsRewrap, message, call),
    /** @param message with its grant: something else is done between that and this */
    setMinVersion: (message: z.output<typeof kmsSetMinVersion.request>, call: Call) =>
      ask(kmsSetMinVersion, message, call),
    async destroyKey(by: Granter, asked: Ungranted<typeof kmsDestroyKey.request>, call: Call) {
      return (await askFor(by, kmsDestroyKey, asked, call)).version;
    },
    async undestroyKey(by: Granter, asked: Ungranted<typeof kmsUndestroyKey.request>, call: Call) {
      return (await askFor(by, kmsUndestroyKey, asked, call)).version;
    },
    jwks: (call: Call) => ask(kmsJwks, {}, call),
  };
}

/** No answer, or a refused grant: neither is about the API token the request itself came with. */
function asKmsError(thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError)) return thrown;
  switch (thrown.code) {
    case 'bus_unavailable':
    case 'unavailable':
      return new ColonnadeError('kms_unavailable', 'the key service does not answer', { cause: thrown });
    case 'unauthorized':
    case 'forbidden':
      return new ColonnadeError('kms_refused', `the key service refuses: ${thrown.message}`, {
        cause: thrown,
      });
    default:
      return thrown;
  }
}
