import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, auditRecords, startWorld } from './support.ts';

describe('whatever is HTTP', () => {
  let world: ApiWorld;
  before(async () => {
    world = await startWorld();
  });
  after(() => world[Symbol.asyncDispose]());

  /** The head and body of what comes back for these bytes, to the end of the connection. */
  function exchange(head: string, body = ''): Promise<string> {
    const { hostname, port } = new URL(world.api.url);
    return new Promise((resolve, reject) => {
      let answer = '';
      const socket = connect(Number(port), hostname, () => socket.write(`${head}\r\n\r\n${body}`));
      socket.on('data', (chunk) => {
        answer += chunk.toString();
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(answer));
    });
  }

  /** Method, path and further headers; what is on record of it then, as status, verb, URI and user. */
  const CASES = [
    ['GET', '/masters/%zz', '', 400, 'bad_request'],
    ['GET', '/%', '', 400, 'bad_request'],
    ['POST', '/pillars/%ff%00/reveal?x=%zz', '', 400, 'bad_request'],
    ['GET', `/pillars/${'x'.repeat(2000)}`, '', 404, 'not_found'],
    ['GET', '/nowhere', '\r\nExpect: nonsense', 404, 'not_found'],
    ['GET', '/masters', '\r\nExpect: nonsense', 200, undefined],
    ['CONNECT', 'example.com:443', '', 405, 'method_not_allowed'],
    ['TRACE', '/masters', '', 405, 'method_not_allowed'],
    ['OPTIONS', '*', '', 404, 'not_found'],
    ['GET', 'http://elsewhere.example/masters', '', 200, undefined],
    ['GET', '/masters', '\r\nUpgrade: websocket\r\nConnection: Upgrade', 200, undefined],
  ] as const;
  for (const [index, [method, uri, more, status, code]] of CASES.entries()) {
    for (const known of [true, false]) {
      const name = `${method} ${uri.slice(0, 40)}${more.trim()} of ${known ? 'somebody' : 'a stranger'}`;
      test(`is on record: ${name}`, async () => {
        const id = `every-${index}-${known}`;
        const who = known ? `\r\nAuthorization: Bearer ${world.adminToken}` : '';
        const close = more.includes('Connection') ? '' : '\r\nConnection: close';
        const sent = `${method} ${uri} HTTP/1.1\r\nHost: x\r\nAudit-ID: ${id}${who}${more}${close}`;
        const answer = await exchange(more.includes('Upgrade') ? `${sent}, close` : sent);
        const [wanted, reason] = known ? [status, code] : [401, 'unauthorized'];
        assert.match(answer, new RegExp(`^HTTP/1.1 ${wanted} `, 'u'));
        assert.match(answer, new RegExp(`\r\naudit-id: ${id}\r\n`, 'iu'));
        if (wanted >= 400) assert.match(answer, new RegExp(`"code":"${reason}"`, 'u'));
        const ended = async () =>
          (await auditRecords(world.bus)).find(
            ({ auditID, stage }) => auditID === id && stage === 'ResponseComplete',
          );
        const { requestURI, user, responseStatus } = await waitFor('the record', ended);
        assert.deepEqual(
          [requestURI, user.username, responseStatus?.code, responseStatus?.reason],
          [uri, known ? 'bootstrap-admin' : 'system:anonymous', wanted, reason],
        );
      });
    }
  }

  test('is on record without a Host, and refused', async () => {
    const who = `Audit-ID: no-host\r\nAuthorization: Bearer ${world.adminToken}\r\nConnection: close`;
    assert.match(await exchange(`GET /masters HTTP/1.1\r\n${who}`), /^HTTP\/1\.1 400 .*"field":"Host"/su);
    const found = async () => (await auditRecords(world.bus)).find(({ auditID }) => auditID === 'no-host');
    assert.equal((await waitFor('the record', found)).responseStatus?.code, 400);
  });

  test('is on record when its body never comes to its end', async () => {
    const { hostname, port } = new URL(world.api.url);
    const head = `POST /pillars HTTP/1.1\r\nHost: x\r\nAudit-ID: half\r\nAuthorization: Bearer ${world.adminToken}`;
    const rest = '\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name":';
    const socket = connect(Number(port), hostname, () => socket.end(head + rest));
    const found = async () => (await auditRecords(world.bus)).find(({ auditID }) => auditID === 'half');
    const { stage, user } = await waitFor('the record', found);
    assert.deepEqual([stage, user.username], ['ResponseComplete', 'bootstrap-admin']);
    socket.destroy();
  });
});
