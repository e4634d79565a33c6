import { checkFolder, saveCredentials } from '../../shared/credentials.ts';
import { countOf } from '../../shared/pages.ts';
import { asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { LIFETIME_OPTION, MASTER_OPTIONS } from './options.ts';

export const masterCreate = defineCommand({
  path: 'master create',
  summary: 'register a logical master',
  details:
    'Its token and its Redis password are shown this once. With --save they go into new files of mode 0600 instead: token, redis-password, users.acl.',
  args: { id: { help: 'logical master: A–Z a–z 0–9 . _ -' } },
  options: {
    ...MASTER_OPTIONS,
    ...LIFETIME_OPTION,
    save: { value: 'DIR', help: 'write the credentials there and do not show them' },
  },
  examples: [
    ['master create salt-east --env prod --save salt-east', 'credentials into files'],
    ['master create salt-west --on-unknown-minion refuse', 'only minions that are registered'],
  ],
  async run(session, { args, options }) {
    const { env, save, 'on-unknown-minion': unknown, 'token-lifetime': lifetime } = options;
    const body = {
      ...{ id: args.id, envs: [...env] },
      ...(unknown === undefined ? {} : { on_unknown_minion: unknown }),
      ...(lifetime === undefined ? {} : { token_lifetime_s: BigInt(countOf('token-lifetime', lifetime)) }),
    };
    const api = session.api();
    if (save !== undefined) await checkFolder(save, ['token', 'redis-password', 'users.acl']);
    const { value } = await api.call('POST', '/masters', body);
    const { token, bridge, ...master } = asObject(value);
    const [made, redis] = [asObject(token), asObject(bridge)];
    if (save !== undefined) {
      const rules = (redis.redis_acl_rules as string[]).join(' ');
      await saveCredentials(save, {
        token: textOf(made.token),
        'redis-password': textOf(redis.redis_password),
        'users.acl': `user ${textOf(redis.redis_user)} ${rules}`,
      });
      session.out.note(`token, redis-password and users.acl are in ${save}`);
      return await show(session, { ...master, redis_user: redis.redis_user ?? null }, (m) => fields(m));
    }
    session.out.note('the token and the password are shown this once: keep them now');
    await show(session, value, () => [
      ...fields(master),
      ['token', textOf(made.token)],
      ['token_expires_at', textOf(made.expires_at)],
      ['redis_user', textOf(redis.redis_user)],
      ['redis_password', textOf(redis.redis_password)],
      [
        'redis_acl',
        `ACL SETUSER ${textOf(redis.redis_user)} ${(redis.redis_acl_rules as string[]).join(' ')}`,
      ],
    ]);
  },
});

function fields(master: ReturnType<typeof asObject>): (readonly [string, string])[] {
  return Object.entries(master).map(([name, value]) => [name, textOf(value)] as const);
}
