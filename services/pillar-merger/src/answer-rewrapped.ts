import { type Call, ColonnadeError } from '@colonnade/contracts';
import { answerMerge, type MergeAnswer, type MergeDeps, type MergeRequest } from './answer-merge.ts';

/**
 * As answerMerge. Bringing stored values under another key is no change of the estate, so what is cached goes on standing
 * under the key before. When that opens nothing any more, the merge is made once again from what the store holds now.
 */
export async function answerRewrapped(
  request: MergeRequest,
  deps: MergeDeps,
  call: Call,
): Promise<MergeAnswer> {
  try {
    return await answerMerge(request, deps, call);
  } catch (thrown) {
    if (!isKeyUnknown(thrown)) throw thrown;
    const read: MergeDeps['estate']['read'] = (c, compute) => deps.estate.read(c, compute, { fresh: true });
    return await answerMerge(request, { ...deps, estate: { read } }, call);
  }
}

function isKeyUnknown(thrown: unknown): boolean {
  return (
    thrown instanceof ColonnadeError &&
    thrown.cause instanceof ColonnadeError &&
    thrown.cause.code === 'kid_unknown'
  );
}
