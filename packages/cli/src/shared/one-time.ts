import type { Value } from '@colonnade/value';
import type { Session } from '../session.ts';
import { checkFolder, saveCredentials } from './credentials.ts';
import { allFields, asObject, show, textOf } from './view.ts';

/** Says where what is shown only once goes: into a file of mode 0600, or before the operator's eyes. */
export const SAVE_OPTION = {
  save: { value: 'DIR', help: 'write it to the file "token" there, mode 0600, and do not show it' },
} as const;

/** Has a token made, and shows it, or saves it and shows the rest. */
export async function makeToken(
  session: Session,
  save: string | undefined,
  make: () => Promise<{ value: Value | undefined }>,
): Promise<void> {
  if (save !== undefined) await checkFolder(save, ['token']);
  const { value } = await make();
  if (save === undefined) {
    session.out.note('the token is shown this once: keep it now');
    return await show(session, value, allFields);
  }
  const { token, ...rest } = asObject(value);
  await saveCredentials(save, { token: textOf(token) });
  session.out.note(`token is in ${save}`);
  await show(session, rest, allFields);
}
