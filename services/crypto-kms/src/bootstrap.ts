import { apiTokenId, BOOTSTRAP_SUB, ColonnadeError, deriveGrantKey } from '@colonnade/contracts';
import { readPrivateText } from './private-file.ts';
import type { Readers } from './readers.ts';

/**
 * Registers the API token of BOOTSTRAP_TOKEN_FILE, whose owner may reveal and administer: the first one there is. One
 * that an admin has deleted since stays deleted.
 * @returns the token's public id
 * @throws ColonnadeError `misconfigured` for a file that others may read, or that holds no API token
 */
export async function registerBootstrapToken(readers: Readers, file: string): Promise<string> {
  const token = readPrivateText(file, 'BOOTSTRAP_TOKEN_FILE');
  const tokenId = apiTokenId(token);
  if (tokenId === undefined)
    throw new ColonnadeError('misconfigured', 'BOOTSTRAP_TOKEN_FILE holds no API token (col_<id>_<secret>)');
  try {
    await readers.put({
      token_id: tokenId,
      sub: BOOTSTRAP_SUB,
      rights: ['reveal', 'admin'],
      grant_key_hex: deriveGrantKey(token).toString('hex'),
      expires_at_ms: null,
      origin: 'bootstrap',
    });
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError) || thrown.code !== 'conflict') throw thrown;
    if ((await readers.find(tokenId)) !== undefined)
      throw new ColonnadeError('misconfigured', 'BOOTSTRAP_TOKEN_FILE has the id of another API token');
  }
  return tokenId;
}
