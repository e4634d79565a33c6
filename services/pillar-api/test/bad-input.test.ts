import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { LIMITS } from '@colonnade/contracts';
import { type ApiAnswer, type ApiClient, createApiClient } from '@colonnade/embedded';
import { type EstateReader, openSqliteReader, type PillarRecord } from '@colonnade/estate-store';
import { parseValue, type Value } from '@colonnade/value';
import { type ApiWorld, assertProblem, etagOfAnswer, plain, sendPlain, startWorld } from './support.ts';

/** One try of a line of the README's table, in its words. */
type Case = { row: string; status: number; code?: string; field?: string; send: () => Promise<ApiAnswer> };

describe('bad input is refused whole, with the reason', () => {
  let world: ApiWorld;
  let reader: EstateReader;
  let editor: ApiClient;
  let viewer: ApiClient;
  let spareToken: string;
  let root: { pid: string; etag: string };

  before(async () => {
    world = await startWorld();
    reader = await openSqliteReader({ path: world.storePath });
    editor = await world.as(['editor']);
    viewer = await world.as(['viewer']);
    spareToken = (await world.tokenOf(['viewer'], 'spare')).token;
    await world.admin.call('POST', '/masters', parseValue('{"id":"m1"}'));
    for (const [id, parent] of [
      ['c1', 'null'],
      ['c2', '"c1"'],
      ['c3', '"c2"'],
    ]) {
      await world.admin.call(
        'POST',
        '/collections',
        parseValue(`{"id":"${id}","name":"${id}","parent_id":${parent}}`),
      );
    }
    await putMinion('web-1', []);
    const made = await create('{"tgt_type":"root","name":"kept","value":1}');
    root = { pid: String(plain(made).pid), etag: etagOfAnswer(made) };
    assert.equal(
      (await create('{"tgt_type":"root","name":"sealed","value":"x","is_secret":true}')).status,
      201,
    );
  });
  after(async () => {
    await reader[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  async function raw(
    method: string,
    path: string,
    body?: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
  ): Promise<ApiAnswer> {
    const response = await fetch(new URL(path, world.api.url), {
      method,
      headers: {
        authorization: `Bearer ${world.adminToken}`,
        'content-type': 'application/json',
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      value: text === '' ? undefined : parseValue(text),
    };
  }
  const create = (body: string | Uint8Array<ArrayBuffer>, headers?: Record<string, string>) =>
    raw('POST', '/pillars', body, headers);
  const withName = (name: string) =>
    sendPlain(world.admin, 'POST', '/pillars', { tgt_type: 'root', name, value: 1 });
  const withValue = (json: string) => create(`{"tgt_type":"root","name":"v","value":${json}}`);
  const secretWith = (value: Value, name = 'v', by: ApiClient = world.admin) =>
    by.send('POST', '/pillars', { tgt_type: 'root', name, value, is_secret: true });
  const putMinion = (id: string, collections: string[]) =>
    sendPlain(
      world.admin,
      'PUT',
      `/masters/m1/minions/${encodeURIComponent(id)}`,
      { collections },
      { 'if-none-match': '*' },
    );
  const move = async (id: string, parent_id: string) => {
    const etag = etagOfAnswer(await world.admin.send('GET', `/collections/${id}`));
    return sendPlain(world.admin, 'PATCH', `/collections/${id}`, { parent_id }, { 'if-match': etag });
  };
  const storedSecret = async (): Promise<Value> => {
    const snapshot = await reader.snapshot({
      since: undefined,
      scopes: ['base'],
      collections: false,
      masters: [],
      minions: [],
    });
    const found = snapshot.scopes.get('base')?.find((p: PillarRecord) => p.name === 'sealed');
    assert.ok(found);
    return found.value;
  };
  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

  // biome-ignore format: one case a line, like the table they are
  const CASES: readonly Case[] = [
    { row: 'a `tgt_type` that does not exist', status: 422, code: 'unprocessable', field: 'tgt_type', send: () => create('{"tgt_type":"rooot","name":"v","value":1}') },
    { row: 'a task or a template that is not in the estate', status: 422, code: 'unprocessable', field: 'tgt_id', send: () => create('{"tgt_type":"task","tgt_id":"t1","name":"v","value":1}') },
    { row: 'another `tgt_type` than root and minion in a list', status: 422, code: 'unprocessable', field: 'tgt_type', send: () => raw('POST', '/pillars/list', '{"tgt_type":"collection"}') },
    { row: 'an empty name', status: 422, code: 'unprocessable', field: 'name', send: () => withName('') },
    { row: 'a name over 255 bytes', status: 422, code: 'unprocessable', field: 'name', send: () => withName('é'.repeat(128)) },
    { row: 'a control character in a name', status: 422, code: 'unprocessable', field: 'name', send: () => withName('a\u0000b') },
    { row: 'the names `_errors` and `colonnade`', status: 422, code: 'unprocessable', field: 'name', send: () => withName('_errors') },
    { row: 'the names `_errors` and `colonnade`', status: 422, code: 'unprocessable', field: 'name', send: () => withName('colonnade') },
    { row: 'a name Salt acts on (`schedule`, `beacons`, `mine_functions`, `master_*`), from an editor', status: 403, code: 'forbidden', send: () => sendPlain(editor, 'POST', '/pillars', { tgt_type: 'root', name: 'schedule', value: {} }) },
    { row: '`:`, `;` or `,` in an id', status: 422, code: 'unprocessable', field: 'id', send: () => putMinion('web-1;master:m2', []) },
    { row: '`:`, `;` or `,` in an id', status: 422, code: 'unprocessable', field: 'id', send: () => raw('POST', '/collections', '{"id":"c9;user:eve","name":"x"}') },
    { row: '`:`, `;` or `,` in an id', status: 422, code: 'unprocessable', field: 'tgt_id', send: () => create('{"tgt_type":"minion","tgt_id":"web-1;master:m2","master":"m1","name":"v","value":1}') },
    { row: '`:`, `;` or `,` in an id', status: 422, code: 'unprocessable', field: 'id', send: () => raw('POST', '/masters', '{"id":"m1:x"}') },
    { row: 'a minion, master or collection that is not in the estate', status: 422, code: 'unknown_minion', field: 'minion_id', send: () => create('{"tgt_type":"minion","minion_id":"nobody","master":"m1","name":"v","value":1}') },
    { row: 'a minion, master or collection that is not in the estate', status: 422, code: 'unknown_master', field: 'master', send: () => create('{"tgt_type":"minion","minion_id":"web-1","master":"m9","name":"v","value":1}') },
    { row: 'a minion, master or collection that is not in the estate', status: 422, code: 'unprocessable', field: 'collection_id', send: () => create('{"tgt_type":"collection","collection_id":"c9","name":"v","value":1}') },
    { row: 'a minion, master or collection that is not in the estate', status: 422, code: 'unprocessable', field: 'collections.1', send: () => putMinion('web-2', ['c1', 'c9']) },
    { row: 'a target field of another `tgt_type`', status: 422, code: 'unprocessable', field: 'master', send: () => create('{"tgt_type":"root","master":"m1","name":"v","value":1}') },
    { row: '`created_by` that is not the caller', status: 422, code: 'unprocessable', field: 'created_by', send: () => create('{"tgt_type":"root","name":"v","value":1,"created_by":"eve"}') },
    { row: 'a value over 32 levels', status: 422, code: 'value_invalid', field: 'value', send: () => withValue(deep(LIMITS.valueDepth + 1)) },
    { row: 'a value over 32 levels', status: 422, code: 'value_invalid', send: () => withValue(deep(2000)) },
    { row: 'a value over 256 KiB', status: 422, code: 'value_invalid', field: 'value', send: () => withValue(`"${'x'.repeat(LIMITS.valueBytes)}"`) },
    { row: 'an integer past 64 bits, a float past the doubles', status: 422, code: 'value_invalid', send: () => withValue('9223372036854775808') },
    { row: 'an integer past 64 bits, a float past the doubles', status: 422, code: 'value_invalid', send: () => withValue('1e999') },
    { row: 'half of a surrogate pair', status: 422, code: 'value_invalid', send: () => withValue('"\\ud800"') },
    { row: 'a key twice in one object', status: 400, code: 'bad_request', send: () => withValue('{"a":1,"a":2}') },
    { row: 'bytes that are not UTF-8', status: 400, code: 'bad_request', send: () => create(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])) },
    { row: 'text that is not JSON (`NaN`, a comment, a trailing comma)', status: 400, code: 'bad_request', send: () => withValue('NaN') },
    { row: 'text that is not JSON (`NaN`, a comment, a trailing comma)', status: 400, code: 'bad_request', send: () => create('{"tgt_type":"root","name":"v","value":1,}') },
    { row: 'no body where one is needed', status: 400, code: 'bad_request', send: () => create('') },
    { row: 'an unknown field or query parameter', status: 422, code: 'unprocessable', field: 'extra', send: () => create('{"tgt_type":"root","name":"v","value":1,"extra":1}') },
    { row: 'an unknown field or query parameter', status: 422, code: 'unprocessable', field: '__proto__', send: () => create('{"tgt_type":"root","name":"v","value":1,"__proto__":1}') },
    { row: 'an unknown field or query parameter', status: 422, code: 'unprocessable', field: 'deep', send: () => raw('GET', '/collections?deep=1') },
    { row: 'a missing field, a field of the wrong kind', status: 422, code: 'unprocessable', field: 'value', send: () => create('{"tgt_type":"root","name":"v"}') },
    { row: 'a missing field, a field of the wrong kind', status: 422, code: 'unprocessable', field: 'is_secret', send: () => create('{"tgt_type":"root","name":"v","value":1,"is_secret":"yes"}') },
    { row: 'a missing field, a field of the wrong kind', status: 422, code: 'unprocessable', field: 'limit', send: () => raw('POST', '/pillars/list', '{"limit":1.0}') },
    { row: 'a broken `$enc`', status: 422, code: 'value_invalid', field: 'value', send: () => secretWith(parseValue('{"$enc":{"v":1}}')) },
    { row: 'a broken `$enc`', status: 422, code: 'value_invalid', field: 'value', send: async () => secretWith(spoil(await storedSecret()), 'sealed2') },
    { row: 'a `$enc` sealed for another pillar', status: 422, code: 'value_invalid', field: 'value', send: async () => secretWith(await storedSecret(), 'elsewhere') },
    { row: 'a `$enc` from someone who may not read secrets', status: 403, code: 'forbidden', send: async () => secretWith(await storedSecret(), 'sealed', editor) },
    { row: 'a `$enc` without `is_secret: true`, below the top level, or in an update', status: 422, code: 'value_invalid', field: 'value', send: () => withValue('{"$enc":1}') },
    { row: 'a `$enc` without `is_secret: true`, below the top level, or in an update', status: 422, code: 'value_invalid', field: 'value', send: () => withValue('[{"a":{"$enc":1}}]') },
    { row: 'a `$enc` without `is_secret: true`, below the top level, or in an update', status: 422, code: 'value_invalid', field: 'value', send: () => secretWith(parseValue('{"a":{"$enc":1}}')) },
    { row: 'a `$enc` without `is_secret: true`, below the top level, or in an update', status: 422, code: 'value_invalid', field: 'value', send: () => raw('PUT', `/pillars/${root.pid}`, '{"value":{"$enc":1}}', { 'if-match': root.etag }) },
    { row: 'a collection below itself', status: 409, code: 'conflict', field: 'parent_id', send: () => move('c1', 'c3') },
    { row: 'a collection below itself', status: 409, code: 'conflict', field: 'parent_id', send: () => move('c2', 'c2') },
    { row: 'a collection tree over 32 levels', status: 409, code: 'conflict', field: 'parent_id', send: async () => growTree() },
    { row: 'a body over 512 KiB', status: 413, code: 'too_large', send: () => withValue(`"${'x'.repeat(LIMITS.httpBodyBytes)}"`) },
    { row: 'a page of more than 500 rows, a cursor this API never gave', status: 422, code: 'unprocessable', field: 'limit', send: () => raw('POST', '/pillars/list', '{"limit":501}') },
    { row: 'a page of more than 500 rows, a cursor this API never gave', status: 422, code: 'unprocessable', field: 'limit', send: () => raw('GET', '/masters?limit=501') },
    { row: 'a page of more than 500 rows, a cursor this API never gave', status: 422, code: 'unprocessable', field: 'limit', send: () => raw('GET', '/masters?limit=abc') },
    { row: 'a page of more than 500 rows, a cursor this API never gave', status: 422, code: 'unprocessable', field: 'cursor', send: () => raw('POST', '/pillars/list', '{"cursor":"abc"}') },
    { row: 'a page past the end', status: 200, send: () => raw('POST', '/pillars/list', `{"cursor":"${Buffer.from('c1:zzzz').toString('base64url')}"}`) },
    { row: 'a body that is not JSON by its type, is compressed, or in another charset', status: 415, code: 'unsupported_media_type', send: () => create('a=1', { 'content-type': 'application/x-www-form-urlencoded' }) },
    { row: 'a body that is not JSON by its type, is compressed, or in another charset', status: 415, code: 'unsupported_media_type', send: () => create('{}', { 'content-encoding': 'gzip' }) },
    { row: 'a body that is not JSON by its type, is compressed, or in another charset', status: 415, code: 'unsupported_media_type', send: () => create('{}', { 'content-type': 'application/json; charset=latin1' }) },
    { row: 'a change without If-Match', status: 428, code: 'precondition_required', field: 'If-Match', send: () => raw('PUT', `/pillars/${root.pid}`, '{"value":2}') },
    { row: 'a change without If-Match', status: 428, code: 'precondition_required', field: 'If-None-Match', send: () => raw('PUT', '/masters/m1/minions/web-3', '{"collections":[]}') },
    { row: 'a change with the ETag of another state', status: 412, code: 'precondition_failed', send: () => raw('DELETE', `/pillars/${root.pid}`, undefined, { 'if-match': '"x.y.1"' }) },
    { row: 'a change with the ETag of another state', status: 412, code: 'precondition_failed', send: () => raw('DELETE', `/pillars/${root.pid}`, undefined, { 'if-match': `W/${root.etag}` }) },
    { row: 'a header that cannot be read (If-Match, If-None-Match, Idempotency-Key)', status: 400, code: 'bad_request', field: 'If-Match', send: () => raw('DELETE', `/pillars/${root.pid}`, undefined, { 'if-match': 'x' }) },
    { row: 'a header that cannot be read (If-Match, If-None-Match, Idempotency-Key)', status: 400, code: 'bad_request', field: 'If-None-Match', send: () => create('{"tgt_type":"root","name":"v","value":1}', { 'if-none-match': '"x"' }) },
    { row: 'a header that cannot be read (If-Match, If-None-Match, Idempotency-Key)', status: 400, code: 'bad_request', field: 'Idempotency-Key', send: () => create('{"tgt_type":"root","name":"v","value":1}', { 'idempotency-key': 'x'.repeat(256) }) },
    { row: 'an Idempotency-Key where the answer holds a secret', status: 400, code: 'bad_request', field: 'Idempotency-Key', send: () => raw('POST', '/tokens', '{"sub":"x","roles":["viewer"]}', { 'idempotency-key': 'k' }) },
    { row: 'the value of a secret, changed', status: 409, code: 'secret_immutable', send: changeSecret },
    { row: 'a seal of what is a secret, an unseal of what is none', status: 409, code: 'conflict', send: () => raw('POST', `/pillars/${root.pid}/unseal`, undefined, { 'if-match': root.etag }) },
    { row: 'a second pillar of the same name and target', status: 409, code: 'already_exists', send: () => withName('kept') },
    { row: 'a second pillar, with If-None-Match: *', status: 412, code: 'precondition_failed', field: 'If-None-Match', send: () => create('{"tgt_type":"root","name":"kept","value":1}', { 'if-none-match': '*' }) },
    { row: 'a path or an id that does not exist', status: 404, code: 'not_found', send: () => raw('GET', '/pillars/nope') },
    { row: 'a path or an id that does not exist', status: 404, code: 'not_found', send: () => raw('GET', '/nope') },
    { row: 'a path or an id that does not exist', status: 404, code: 'not_found', send: () => raw('GET', `/pillars/${'x'.repeat(2000)}`) },
    { row: 'a method the path does not take', status: 405, code: 'method_not_allowed', send: () => raw('PATCH', '/pillars/list', '{}') },
    { row: 'a path with a bad percent-encoding', status: 400, code: 'bad_request', send: () => raw('GET', '/pillars/%zz') },
    { row: 'no token, a wrong one', status: 401, code: 'unauthorized', send: () => raw('GET', '/masters', undefined, { authorization: 'Basic YTpi' }) },
    { row: 'no token, a wrong one', status: 401, code: 'unauthorized', send: () => createApiClient(world.api.url, `${world.adminToken.slice(0, -1)}~`).send('GET', '/masters') },
    { row: 'what is not HTTP', status: 400, code: 'bad_request', send: () => rawSocket('GET / HTTP/9.9\r\n\r\n') },
    { row: 'headers over 16 KiB', status: 431, code: 'bad_request', send: () => rawSocket(`GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`) },
    { row: 'more requests with one token than `REQUESTS_PER_MINUTE` and `REQUESTS_BURST` allow', status: 429, code: 'rate_limited', send: tooMany },
    { row: 'over 60 requests in a minute that the user may not make', status: 429, code: 'rate_limited', send: denied },
    { row: 'over 60 requests without a valid token from one address in a minute', status: 429, code: 'rate_limited', send: strangers },
  ];

  /** A valid token is not limited by what strangers do from the same address. */
  async function strangers(): Promise<ApiAnswer> {
    for (let i = 0; i < 60; i += 1) await raw('GET', '/masters', undefined, { authorization: 'Bearer x' });
    const answer = await raw('GET', '/masters', undefined, { authorization: 'Bearer x' });
    assert.ok(answer.headers.get('retry-after'));
    assert.equal((await raw('GET', '/masters')).status, 200);
    return answer;
  }

  /** Of a process of its own, whose limit is low; another token is not concerned. */
  async function tooMany(): Promise<ApiAnswer> {
    const { url } = await world.startApi({ REQUESTS_PER_MINUTE: '1', REQUESTS_BURST: '2' });
    const [busy, other] = [createApiClient(url, world.adminToken), createApiClient(url, spareToken)];
    for (const left of ['1', '0']) {
      const answer = await busy.send('GET', '/masters');
      assert.deepEqual([answer.status, answer.headers.get('ratelimit-remaining')], [200, left]);
    }
    const answer = await busy.send('GET', '/masters');
    assert.ok(Number(answer.headers.get('retry-after')) > 0);
    assert.equal((await other.send('GET', '/masters')).status, 200);
    return answer;
  }

  async function denied(): Promise<ApiAnswer> {
    for (let i = 0; i < 60; i += 1)
      assert.equal((await viewer.send('POST', '/tokens', parseValue('{}'))).status, 403);
    return viewer.send('POST', '/tokens', parseValue('{}'));
  }

  async function changeSecret(): Promise<ApiAnswer> {
    const list = plain(await raw('POST', '/pillars/list', '{"name":"sealed"}')) as {
      items: { pid: string; etag: string }[];
    };
    const [secret] = list.items;
    return raw('PUT', `/pillars/${secret?.pid}`, '{"value":"y"}', { 'if-match': String(secret?.etag) });
  }

  /** Leaves c3 and 29 more below c1 > c2: one more is one too many. The tree is grown before the tick is looked at. */
  async function growTree(): Promise<ApiAnswer> {
    return raw('POST', '/collections', `{"id":"d33","name":"d","parent_id":"d${LIMITS.collectionDepth}"}`);
  }

  function rawSocket(text: string): Promise<ApiAnswer> {
    const { hostname, port } = new URL(world.api.url);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write(text));
      let answer = '';
      socket.on('data', (chunk) => {
        answer += chunk.toString();
      });
      socket.on('error', reject);
      socket.on('close', () => {
        const [head = '', body = ''] = answer.split('\r\n\r\n');
        const headers = new Headers(
          head
            .split('\r\n')
            .slice(1)
            .map((line) => line.split(/: (.*)/su).slice(0, 2) as [string, string]),
        );
        resolve({ status: Number(head.split(' ')[1]), headers, value: parseValue(body) });
      });
    });
  }

  test('the tree of collections is grown to its limit', async () => {
    for (let level = 4; level <= LIMITS.collectionDepth; level += 1) {
      const parent = level === 4 ? 'c3' : `d${level - 1}`;
      const made = await raw('POST', '/collections', `{"id":"d${level}","name":"d","parent_id":"${parent}"}`);
      assert.equal(made.status, 201);
    }
  });

  for (const [index, { row, status, code, field, send }] of CASES.entries()) {
    test(`${index + 1}. ${row}`, async () => {
      const before = await tick();
      const answer = await send();
      if (code !== undefined) assertProblem(answer, status, code, field);
      assert.equal(answer.status, status);
      assert.equal(await tick(), before, 'something was changed');
    });
  }

  test('a page past the end is empty and has no next one', async () => {
    const cursor = Buffer.from('c1:zzzz').toString('base64url');
    const answer = await raw('POST', '/pillars/list', `{"cursor":"${cursor}"}`);
    assert.deepEqual(plain(answer), { items: [], next_cursor: null });
  });

  test('a fault in the text is told with its place', async () => {
    const answer = await create('{"tgt_type":"root",\n "name":"a", "name":"b"}');
    assertProblem(answer, 400, 'bad_request');
    assert.deepEqual(plain(answer).position, { offset: 33, line: 2, column: 14 });
  });

  test('a fault is told in words one can act on', async () => {
    const detailOf = async (sent: Promise<ApiAnswer>) => plain(await sent).detail;
    const posted = (url: string, body: string) => detailOf(raw('POST', url, body));
    assert.deepEqual(
      [
        await posted('/masters', '{"id":"m9","token_lifetime_s":59}'),
        await posted('/pillars/list', '{"limit":501}'),
        await posted('/pillars', '{"tgt_type":"root","value":1}'),
        await posted('/pillars', '{"tgt_type":"rooot","name":7,"value":1}'),
        await posted('/pillars', '{"tgt_type":"root","name":"v","value":1,"extra":1}'),
        await posted('/collections', '[]'),
        await detailOf(raw('GET', '/explain?master=m1')),
        await detailOf(raw('GET', '/masters?limit=abc')),
        await posted('/tasks/templates', '{"id":"../x","name":"x","schema":{}}'),
        await posted('/pillars/search', '{"since":"2026-02-30T00:00:00Z"}'),
        await posted('/pillars/p1/move', '{"tgt_type":"task","tgt_id":"t1"}'),
      ],
      [
        'token_lifetime_s: must be from 60 to 31622400',
        'limit: must be from 1 to 500',
        'name: is missing',
        'tgt_type: must be "root", "collection", "minion", "task" or "task_tpl"; name: must be text',
        'unknown field "extra"',
        'must be an object',
        'minion_id: is missing',
        'limit: must be 1–500',
        'id: task template id holds a slash',
        'since: there is no such time',
        'tgt_type: must be "root", "collection" or "minion"; pillars of tasks and templates are checked against a schema and do not move there',
      ],
    );
  });

  test('no error repeats a value', async () => {
    const canary = 'canary-7f3a';
    const bodies = [
      `{"tgt_type":"root","name":"kept","value":"${canary}"}`,
      `{"tgt_type":"root","name":"v","value":{"$enc":"${canary}"},"is_secret":true}`,
      `{"tgt_type":"root","name":"v","value":"${canary}`,
      `{"tgt_type":"${canary}","name":"v","value":1}`,
    ];
    for (const body of bodies) {
      const answer = await create(body);
      assert.ok(answer.status >= 400);
      assert.doesNotMatch(JSON.stringify(plain(answer)), new RegExp(canary, 'u'));
    }
  });

  test("the README's table has exactly these lines", async () => {
    const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
    const section = readme.split('## What bad input gets')[1]?.split('\n## ')[0] ?? '';
    const lines = section.split('\n').filter((line) => /^\| .* \| \d{3} /u.test(line));
    const told = lines.map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/gu, '').trim()));
    const tested = new Map<string, Set<string>>();
    for (const { row, status, code } of CASES) {
      const codes = tested.get(row) ?? new Set();
      tested.set(row, codes.add(code === undefined ? `${status}` : `${status} \`${code}\``));
    }
    assert.deepEqual(
      told.map(([what, answer]) => `${what}: ${answer}`),
      [...tested].map(([row, codes]) => `${row}: ${[...codes].join(', ')}`),
    );
  });

  async function tick(): Promise<number> {
    const none = { since: undefined, scopes: [], collections: false, masters: [], minions: [] };
    return (await reader.snapshot(none)).clock.tick;
  }
});

/** The same sealed value with one character of its ciphertext changed. */
function spoil(sealed: Value): Value {
  const copy = structuredClone(sealed) as { $enc: { ct_b64: string } };
  const { ct_b64: text } = copy.$enc;
  copy.$enc.ct_b64 = (text.startsWith('A') ? 'B' : 'A') + text.slice(1);
  return copy as unknown as Value;
}
