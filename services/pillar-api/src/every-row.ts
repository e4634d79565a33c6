import { LIMITS } from '@colonnade/contracts';

type Page = { after: string | undefined; limit: number };

/** All rows of a list of the store, however many pages they take. The list may change between two pages. */
export async function* everyRow<T>(
  read: (page: Page) => Promise<{ rows: readonly T[]; next: string | undefined }>,
): AsyncGenerator<T> {
  let after: string | undefined;
  do {
    const { rows, next } = await read({ after, limit: LIMITS.pageRows });
    yield* rows;
    after = next;
  } while (after !== undefined);
}
