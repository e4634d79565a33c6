import { apiTokenId, BOOTSTRAP_SUB, ColonnadeError, deriveGrantKey } from '@colonnade/contracts';
import { readPrivateText } from '@colonnade/service-kit';
import type { Readers } from './readers.ts';

/**
 * Registers the API token of BOOTSTRAP_TOKEN_FILE, whose owner may reveal and administer: the first one there is. One
 * that was deleted since stays deleted as long as there is another admin, as in pillar-api.
 * @returns the token's public id, and whether it is registered now
 * @throws ColonnadeError `misconfigured` for a file that others may read, that holds no API token, or one whose id is
 * another's
 */
export async function registerBootstrapToken(
  readers: Readers,
  file: string,
): Promise<{ tokenId: string; registered: boolean }> {
  const token = readPrivateText(file, 'BOOTSTRAP_TOKEN_FILE');
  const tokenId = apiTokenId(token);
  if (tokenId === undefined)
    throw new ColonnadeError('misconfigured', 'BOOTSTRAP_TOKEN_FILE holds no API token (col_<id>_<secret>)');
  const reader = {
    token_id: tokenId,
    sub: BOOTSTRAP_SUB,
    rights: ['reveal' as const, 'admin' as const],
    grant_key_hex: deriveGrantKey(token).toString('hex'),
    expires_at_ms: null,
    origin: 'bootstrap' as const,
  };
  const revive = !(await readers.hasAdmin(Date.now()));
  try {
    await readers.put(reader, revive);
    return { tokenId, registered: true };
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError) || thrown.code !== 'conflict') throw thrown;
    if ((await readers.find(tokenId)) === undefined) return { tokenId, registered: false };
    throw new ColonnadeError(
      'misconfigured',
      'BOOTSTRAP_TOKEN_FILE holds a token with the id of another one',
    );
  }
}
