import type { ColonnadeError } from '@colonnade/contracts';
import { readKubeconfig } from './kubeconfig.ts';
import { type Answer, createPoster, type Poster } from './post.ts';

/** A poster whose kubeconfig file, with every file it names, can be read anew. */
export type ReloadingPoster = Disposable & {
  /** @param giveUp breaks it off; the webhook may have got it all the same */
  post(body: Uint8Array, giveUp?: AbortSignal): Promise<Answer>;
  /** Reads the files again; when they cannot be used, what was read before stays. */
  reload(): void;
};

/** Kubernetes' client: the whole request, with its answer. */
const TIMEOUT_MS = 30_000;

/** @throws ColonnadeError `misconfigured` */
export function createReloadingPoster(
  file: string,
  onBadFile: (error: ColonnadeError) => void,
): ReloadingPoster {
  let poster: Poster = createPoster(readKubeconfig(file));
  return {
    post: (body, giveUp) => poster.post(body, TIMEOUT_MS, giveUp),
    reload() {
      try {
        const next = createPoster(readKubeconfig(file));
        poster[Symbol.dispose]();
        poster = next;
      } catch (thrown) {
        onBadFile(thrown as ColonnadeError);
      }
    },
    [Symbol.dispose]: () => poster[Symbol.dispose](),
  };
}
