import type { ValueObject } from '@colonnade/value';
import { usageError } from '../../exit-codes.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const revocationCreate = defineCommand({
  path: 'revocation create',
  summary: 'revoke what an OpenID Connect issuer gave: all of a user up to now, or one token',
  options: {
    user: { value: 'NAME', help: 'every token of this user up to now' },
    jti: { value: 'ID', help: 'the token of this id; not the token itself' },
  },
  examples: [
    ['revocation create --user ann', 'all she was given up to now'],
    ['revocation create --jti 5f1c9b7e02d4a683', 'one token'],
  ],
  async run(session, { options: { user, jti } }) {
    if ((user === undefined) === (jti === undefined)) throw usageError('give --user or --jti');
    const body: ValueObject = user === undefined ? { jti: jti ?? '' } : { sub: user };
    const { value } = await session.api().call('POST', '/revocations', body);
    await show(session, value, allFields);
  },
});
