import { apiTokenId, BOOTSTRAP_SUB, ColonnadeError } from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';
import { readPrivateText } from '@colonnade/service-kit';
import { hashToken } from './auth/authenticate.ts';
import type { Events } from './events.ts';
import { isLiveAdmin } from './routes/tokens.ts';

/**
 * Registers the first admin token, from a file, when no admin token is valid: at first start, and when the last one has
 * expired. A bootstrap token that was deleted stays deleted as long as there is another admin.
 * @throws ColonnadeError `misconfigured`
 */
export async function registerBootstrapToken(
  store: Pick<EstateStore, 'listTokens' | 'write'>,
  path: string | undefined,
  events: Pick<Events, 'bootstrapped'>,
): Promise<void> {
  if (path === undefined) return;
  const nowMs = Date.now();
  if ((await store.listTokens()).some((token) => isLiveAdmin(token, nowMs))) return;
  const token = readPrivateText(path, 'BOOTSTRAP_TOKEN_FILE');
  const id = apiTokenId(token);
  if (id === undefined) {
    throw new ColonnadeError(
      'misconfigured',
      `${path} holds no API token of the form col_<id>_<43 characters>`,
    );
  }
  const record = {
    id,
    hash: hashToken(token),
    sub: BOOTSTRAP_SUB,
    roles: ['admin'],
    scopedRoles: [],
    createdAtMs: nowMs,
    expiresAtMs: undefined,
    lastUsedAtMs: undefined,
  } as const;
  const mutations = [{ kind: 'token.put', expect: 'absent', record }] as const;
  try {
    await store.write({ mutations, events: [], by: BOOTSTRAP_SUB, atMs: nowMs });
    events.bootstrapped({ tokenId: id });
  } catch (thrown) {
    // Another process on the same store was faster.
    if (!(thrown instanceof ColonnadeError && thrown.code === 'already_exists')) throw thrown;
  }
}
