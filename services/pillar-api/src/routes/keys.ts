import {
  ColonnadeError,
  kmsSetMinVersion,
  zKeyVersionAsk,
  zKeyVersionPage,
  zKeyVersionView,
  zPageQuery,
  zRewrapView,
} from '@colonnade/contracts';
import type { Estate } from '../estate.ts';
import { cutPage, pageOptions, writeCursor } from '../http/cursor.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { closeInStep } from '../rewrap/close-in-step.ts';
import { findKey, type Key, sealsValues } from '../rewrap/plan.ts';
import type { Rewrap } from '../rewrap/worker.ts';
import { viewKeyVersion, viewRewrap } from '../views.ts';

type Deps = { kms: Kms; estate: Pick<Estate, 'store'>; rewrap: Rewrap };

/** The keyring of crypto-kms (seed 000, keys): its versions and their life. Keys themselves never come here. */
export function keyRoutes(deps: Deps): readonly Route[] {
  return [
    listRoute(deps),
    rotateRoute(deps),
    rewrapStatusRoute(deps),
    rewrapRoute(deps),
    minVersionRoute(deps),
    destroyRoute(deps),
    undestroyRoute(deps),
  ];
}

const CHANGE = { permission: 'key:write', scope: 'estate', idempotency: 'ignored' } as const;
const READ = { permission: 'estate:read', scope: 'estate', idempotency: 'ignored' } as const;

function listRoute({ kms, estate }: Deps): Route {
  return defineRoute({
    ...READ,
    method: 'GET',
    url: '/keys',
    query: zPageQuery,
    response: zKeyVersionPage,
    async handle({ query, call }) {
      const keys = await kms.listKeys(call);
      const use = await estate.store.countKeyUse();
      const all = keys.flatMap((key) => key.versions.map((one) => viewKeyVersion(key, one, use)));
      const { rows, next } = cutPage(all, pageOptions(query), idOf);
      return { status: 200, body: { items: [...rows], next_cursor: writeCursor(next) } };
    },
  });
}

/** Pages go by it, in the order of versions. */
function idOf({ name, version }: { name: string; version: number }): string {
  return `${name} ${String(version).padStart(9, '0')}`;
}

function rotateRoute({ kms }: Deps): Route {
  return defineRoute({
    ...CHANGE,
    method: 'POST',
    url: '/keys/:name/rotate',
    response: zKeyVersionView,
    async handle({ principal, params, call }) {
      const name = params.name ?? '';
      const version = await kms.rotateKey(principal, name, call);
      return { status: 201, body: viewKeyVersion({ name, min_version: 1 }, version, new Map()) };
    },
  });
}

function rewrapStatusRoute({ rewrap }: Deps): Route {
  return defineRoute({
    ...READ,
    method: 'GET',
    url: '/keys/:name/rewrap',
    response: zRewrapView,
    handle: async ({ params, call }) => {
      return { status: 200, body: viewRewrap(await rewrap.status(params.name ?? '', call)) };
    },
  });
}

function rewrapRoute({ rewrap }: Deps): Route {
  return defineRoute({
    ...CHANGE,
    method: 'POST',
    url: '/keys/:name/rewrap',
    response: zRewrapView,
    async handle({ principal, params, call }) {
      return { status: 202, body: viewRewrap(await rewrap.start(params.name ?? '', principal.sub, call)) };
    },
  });
}

function minVersionRoute({ kms, estate }: Deps): Route {
  return defineRoute({
    ...CHANGE,
    method: 'POST',
    url: '/keys/:name/min-version',
    body: zKeyVersionAsk,
    response: zKeyVersionPage,
    async handle({ principal, params, body: { version }, call }) {
      const key = findKey(await kms.listKeys(call), params.name ?? '');
      findVersion(key, version);
      checkBarred(key, version);
      // Before the store closes anything: who can make no grant changes nothing.
      const asked = await principal.granted(kmsSetMinVersion, { name: key.name, version });
      const tell = () => kms.setMinVersion(asked, call);
      // Under a key that signs nothing is stored.
      const readKey = async () => findKey(await kms.listKeys(call), key.name);
      await (sealsValues(key) ? closeInStep(estate.store, readKey, version, tell) : tell());
      const now = findKey(await kms.listKeys(call), key.name);
      const use = await estate.store.countKeyUse();
      const items = now.versions.map((one) => viewKeyVersion(now, one, use));
      return { status: 200, body: { items, next_cursor: null } };
    },
  });
}

/** @throws ColonnadeError `conflict`: a key that seals or signs must not be closed */
function checkBarred({ versions }: Key, least: number): void {
  const sealing = versions.find(
    ({ version, state }) => version < least && state !== 'retired' && state !== 'destroyed',
  );
  if (sealing === undefined) return;
  throw new ColonnadeError(
    'conflict',
    `version ${sealing.version} is ${sealing.state}, and cannot be barred`,
  );
}

function destroyRoute({ kms, estate }: Deps): Route {
  return defineRoute({
    ...CHANGE,
    method: 'POST',
    url: '/keys/:name/destroy',
    body: zKeyVersionAsk,
    response: zKeyVersionView,
    async handle({ principal, params, body, call }) {
      const key = findKey(await kms.listKeys(call), params.name ?? '');
      const { version, kid } = findVersion(key, body.version);
      const use = await estate.store.countKeyUse();
      if (sealsValues(key)) await checkUnused(estate.store, { version, kid, values: use.get(kid) ?? 0 });
      const ended = await kms.destroyKey(principal, { name: key.name, version }, call);
      return { status: 200, body: viewKeyVersion(key, ended, use) };
    },
  });
}

/** @throws ColonnadeError `conflict`: something stands under it, or could come to */
async function checkUnused(
  store: Pick<Estate['store'], 'readClosedKids'>,
  { version, kid, values }: { version: number; kid: string; values: number },
): Promise<void> {
  if (values > 0) throw new ColonnadeError('conflict', `${values} values are stored under ${kid}`);
  if ((await store.readClosedKids()).includes(kid)) return;
  throw new ColonnadeError(
    'conflict',
    `version ${version} may still open: raise the least version above it first`,
  );
}

function undestroyRoute({ kms, estate }: Deps): Route {
  return defineRoute({
    ...CHANGE,
    method: 'POST',
    url: '/keys/:name/undestroy',
    body: zKeyVersionAsk,
    response: zKeyVersionView,
    async handle({ principal, params, body, call }) {
      const key = findKey(await kms.listKeys(call), params.name ?? '');
      const { version } = findVersion(key, body.version);
      const kept = await kms.undestroyKey(principal, { name: key.name, version }, call);
      return { status: 200, body: viewKeyVersion(key, kept, await estate.store.countKeyUse()) };
    },
  });
}

function findVersion({ versions }: Key, wanted: number): Key['versions'][number] {
  const found = versions.find(({ version }) => version === wanted);
  if (found === undefined) throw new ColonnadeError('not_found', 'there is no such version of the key');
  return found;
}
