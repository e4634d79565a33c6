import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { ColonnadeError } from '@colonnade/contracts';
import { apiRole, mergerRole, openMongoReader, openMongoStore } from '@colonnade/estate-store';
import { MongoClient } from 'mongodb';
import { makeAuthority } from '../../../test/support/certificates.ts';
import { mongoForTests, skipWithoutOwnMongo } from '../../../test/support/mongo.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

const look = {
  since: undefined,
  scopes: ['base'],
  collections: true,
  masters: ['m1'],
  minions: [],
  tasks: ['k1'],
};

const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => 'nothing was refused',
    (thrown: ColonnadeError) => `${thrown.code}: ${thrown.message}`,
  );

async function useStore(options: Parameters<typeof openMongoStore>[0]): Promise<void> {
  await using store = await openMongoStore(options);
  const target = { tgtType: 'root', tgtId: 'root', pillarenv: 'base' } as const;
  const record = { ...target, pid: 'p1', name: 'p1', value: 1n, isSecret: false };
  const batch = { events: [{ type: 't', subject: 's', data: null }], by: 'ada', atMs: 1 };
  await store.write({ ...batch, mutations: [{ kind: 'pillar.create', record }] });
  await store.write({ ...batch, mutations: [{ kind: 'pillar.delete', pid: 'p1', expectTick: 1 }] });
  const template = { id: 't1', name: 't', schema: true };
  const put = { kind: 'template.put', expect: 'absent', record: template } as const;
  await store.write({ ...batch, mutations: [put] });
  assert.equal(await store.getTask('k1'), undefined);
  await store.write({ ...batch, mutations: [{ kind: 'template.delete', id: 't1', expect: undefined }] });
  const lease = await store.acquireLease('relay', 'me', 10_000);
  await store.dropOutbox({ tick: 1, index: 0 }, { name: 'relay', fence: lease?.fence ?? 0 });
  assert.equal((await store.readOutbox(10)).length, 3);
  await using _restored = await openMongoStore({ ...options, newIncarnation: true });
}

const openssl = (...args: readonly string[]) => promisify(execFile)('openssl', args);

/** A CA and a certificate of 127.0.0.1, as PEM files, and a CA of somebody else. */
async function makeCertificates(dir: string) {
  const at = (name: string) => path.join(dir, name);
  const key = (name: string) => [
    ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', at(`${name}.key`)],
  ];
  for (const name of ['ca', 'other']) {
    const subject = ['-subj', `/CN=${name}`, '-days', '2', '-out', at(`${name}.pem`)];
    await openssl('req', '-x509', ...key(name), ...subject);
  }
  await openssl('req', ...key('server'), '-subj', '/CN=mongo', '-out', at('server.csr'));
  await writeFile(at('server.ext'), 'subjectAltName=IP:127.0.0.1\n');
  const authority = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '2'];
  const files = ['-in', at('server.csr'), '-extfile', at('server.ext'), '-out', at('server.pem')];
  await openssl('x509', '-req', ...authority, ...files);
  const tls = { caFile: at('ca.pem'), certFile: at('server.pem'), keyFile: at('server.key') };
  return { tls, otherCa: at('other.pem') };
}

describe('access to the database', { skip: await skipWithoutOwnMongo() }, () => {
  test('the roles suffice, and the merger sees neither tokens nor history and writes nothing', async (t) => {
    let asksUsers = false;
    await using mongo = await mongoForTests({ auth: () => asksUsers });
    const database = mongo.freshDatabase();
    await using client = new MongoClient(mongo.url);
    const db = client.db(database);
    for (const role of [apiRole(database), mergerRole(database)]) await db.command(role);
    for (const [user, role] of [
      ['api', 'colonnade_api'],
      ['merger', 'colonnade_merger'],
    ]) {
      await db.command({ createUser: user, pwd: `${user}-password`, roles: [{ role, db: database }] });
    }
    asksUsers = true;
    await mongo.server?.restart();

    const options = { url: mongo.url, database, authDatabase: database };
    const as = (user: string) => ({ ...options, user, password: `${user}-password` });
    await useStore(as('api'));
    await using reader = await openMongoReader(as('merger'));
    await reader.snapshot(look);
    await reader.listMasters();
    await reader.ping();
    assert.match(await refusal(openMongoStore(as('merger'))), /^misconfigured: .*lacks a right/u);
    assert.match(
      await refusal(openMongoStore({ ...as('api'), password: 'x' })),
      /^misconfigured: .*password/u,
    );
    assert.match(await refusal(openMongoStore(options)), /^misconfigured: /u);

    const asUser = (user: string) =>
      new MongoClient(mongo.url, {
        auth: { username: user, password: `${user}-password` },
        authSource: database,
      });
    await using merger = asUser('merger');
    await using api = asUser('api');
    await assert.rejects(merger.db(database).collection('pillars').deleteMany({}), { code: 13 });
    if (mongo.isSubstitute) return t.diagnostic('the substitute knows rights on databases only');
    for (const name of ['tokens', 'versions', 'outbox', 'answers']) {
      const collection = merger.db(database).collection(`colonnade_${name}`);
      await assert.rejects(collection.findOne({}), { code: 13 }, name);
    }
    // Retention and purges remove versions; the clock and the fences of leases only ever grow.
    for (const name of ['meta', 'leases', 'answers']) {
      const collection = api.db(database).collection(`colonnade_${name}`);
      await assert.rejects(collection.deleteMany({}), { code: 13 }, name);
    }
    await assert.rejects(api.db(database).collection('pillars').drop(), { code: 13 });
  });

  test('over TLS the certificate must be of the given CA', async () => {
    await using dir = await tempDir('certs');
    const { tls, otherCa } = await makeCertificates(dir.path);
    await using mongo = await mongoForTests({ tls });
    const options = { url: mongo.url, database: mongo.freshDatabase(), selectTimeoutMs: 1000 };
    await useStore({ ...options, tls: { caFile: tls.caFile } });
    assert.match(await refusal(openMongoStore({ ...options, tls: { caFile: otherCa } })), /^unavailable: /u);
    assert.match(await refusal(openMongoStore(options)), /^unavailable: /u, 'nor one of the system');
    const missing = { caFile: path.join(dir.path, 'absent.pem') };
    assert.match(await refusal(openMongoStore({ ...options, tls: missing })), /^misconfigured: /u);
  });

  test('over TLS a next CA and a next certificate of ours are taken while it runs; a file that is none changes nothing', async () => {
    await using dir = await tempDir('certs');
    const [first, next] = [await makeAuthority(dir.path, 'first'), await makeAuthority(dir.path, 'next')];
    const server = await first.issue('server');
    const clients = path.join(dir.path, 'clients.pem');
    await writeFile(clients, Buffer.concat([await readFile(first.certFile), await readFile(next.certFile)]));
    await using mongo = await mongoForTests({ tls: { ...server, caFile: clients } });
    const caFile = path.join(dir.path, 'trusted.pem');
    const certificateKeyFile = path.join(dir.path, 'own.pem');
    const give = async (authority: typeof first) => {
      const own = await authority.issue('own');
      const pair = [await readFile(own.certFile), await readFile(own.keyFile)];
      await writeFile(certificateKeyFile, Buffer.concat(pair));
      await writeFile(caFile, await readFile(authority.certFile));
    };
    await give(first);
    const options = { url: mongo.url, database: mongo.freshDatabase(), selectTimeoutMs: 1000 };
    await using store = await openMongoStore({ ...options, tls: { caFile, certificateKeyFile } });
    const works = () => waitFor('an answer', () => store.ping().then(() => true), { limitMs: 20_000 });
    await works();

    const whole = await readFile(caFile, 'utf8');
    for (const text of ['half a certi', whole.slice(0, -100), `${whole}${whole.slice(0, 200)}`]) {
      await writeFile(caFile, text);
      const broken = { ...options, tls: { caFile } };
      assert.match(await refusal(openMongoStore(broken)), /^misconfigured: /u);
    }
    await mongo.server?.restart();
    await works();

    const renewed = await next.issue('server');
    for (const file of ['certFile', 'keyFile'] as const)
      await writeFile(server[file], await readFile(renewed[file]));
    await mongo.server?.restart();
    assert.match(await refusal(store.ping()), /^unavailable: /u);
    await give(next);
    await works();
  });
});
