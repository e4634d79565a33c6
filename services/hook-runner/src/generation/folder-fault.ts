/** What fails for one folder like this fails for all of them. */
const OF_ALL: ReadonlySet<string> = new Set([
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
]);

/**
 * Works on the folders of one minion.
 * @returns why it cannot be done, when that is these folders' alone: a file in their place, rights that were taken away
 * @throws whatever else the work throws
 */
export async function folderFaultOf(work: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (thrown) {
    const { code, syscall } = thrown as NodeJS.ErrnoException;
    if (syscall === undefined || code === undefined || OF_ALL.has(code)) throw thrown;
    return `its folder cannot be used: ${code}`;
  }
}
