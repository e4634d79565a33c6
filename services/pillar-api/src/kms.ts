import type { Bus } from '@colonnade/bus';
import {
  type Call,
  ColonnadeError,
  type Enc,
  type Endpoint,
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
  type OpenContext,
  type PillarContext,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { z } from 'zod';

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
  return {
    async seal(context: PillarContext, value: Value, call: Call): Promise<Enc> {
      const [sealed] = await this.sealAll([{ context, value }], call);
      if (sealed === undefined) throw new ColonnadeError('internal', 'the key service answered with no item');
      return sealed;
    },
    /** In the order they were given. @throws ColonnadeError when one of them cannot be sealed */
    async sealAll(values: readonly { context: PillarContext; value: Value }[], call: Call): Promise<Enc[]> {
      const asked = values.map(({ context, value }) => ({ context: toWire(context), value }));
      const { items } = await ask(kmsSeal, { items: asked }, call);
      if (items.length !== values.length)
        throw new ColonnadeError('internal', 'the key service answered with another number of items');
      return items.map((item) => {
        if (!item.ok) throw new ColonnadeError(item.error.code, item.error.message);
        return item.result;
      });
    },
    async open(grant: string, context: PillarContext, enc: Value, call: Call): Promise<Value> {
      return (await ask(kmsOpenForApi, { grant, context: toWire(context), enc }, call)).value;
    },
    async verify(grant: string, context: PillarContext, enc: Value, call: Call): Promise<void> {
      await ask(kmsVerifyForApi, { grant, context: toWire(context), enc }, call);
    },
    reseal: (message: z.output<typeof kmsReseal.request>, call: Call) => ask(kmsReseal, message, call),
    check: (message: z.output<typeof kmsCheck.request>, call: Call) => ask(kmsCheck, message, call),
    async mac(sha256Hex: string, call: Call): Promise<string> {
      return (await ask(kmsMac, { sha256_hex: sha256Hex }, call)).mac_hex;
    },
    putReader: (message: z.output<typeof kmsPutReader.request>, call: Call) =>
      ask(kmsPutReader, message, call),
    deleteReader: (grant: string, tokenId: string, call: Call) =>
      ask(kmsDeleteReader, { grant, token_id: tokenId }, call),
    issueMaster: (message: z.output<typeof kmsIssueMaster.request>, call: Call) =>
      ask(kmsIssueMaster, message, call),
    revokeIdentity: (grant: string, jti: string, call: Call) => ask(kmsRevokeIdentity, { grant, jti }, call),
    issueTask: (message: z.output<typeof kmsIssueTask.request>, call: Call) =>
      ask(kmsIssueTask, message, call),
    renewWorkload: (message: z.output<typeof kmsRenewWorkload.request>, call: Call) =>
      ask(kmsRenewWorkload, message, call),
    makeEnrolment: (message: z.output<typeof kmsMakeEnrolment.request>, call: Call) =>
      ask(kmsMakeEnrolment, message, call),
    enrol: (token: string, call: Call) => ask(kmsEnrol, { token }, call),
    openForWorkload: (message: z.output<typeof kmsOpenForWorkload.request>, call: Call) =>
      ask(kmsOpenForWorkload, message, call),
    async listKeys(call: Call) {
      return (await ask(kmsListKeys, {}, call)).keys;
    },
    async rotateKey(grant: string, name: string, call: Call) {
      return (await ask(kmsRotateKey, { grant, name }, call)).version;
    },
    rewrap: (message: z.output<typeof kmsRewrap.request>, call: Call) => ask(kmsRewrap, message, call),
    setMinVersion: (message: z.output<typeof kmsSetMinVersion.request>, call: Call) =>
      ask(kmsSetMinVersion, message, call),
    async destroyKey(message: z.output<typeof kmsDestroyKey.request>, call: Call) {
      return (await ask(kmsDestroyKey, message, call)).version;
    },
    async undestroyKey(message: z.output<typeof kmsUndestroyKey.request>, call: Call) {
      return (await ask(kmsUndestroyKey, message, call)).version;
    },
    jwks: (call: Call) => ask(kmsJwks, {}, call),
  };
}

/** The context of a pillar as the key service takes it. */
export function toWire(context: PillarContext): OpenContext {
  const { tgtType, tgtId, pillarenv, name } = context;
  return { tgt_type: tgtType, tgt_id: tgtId, pillarenv, name };
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
