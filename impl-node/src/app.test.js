import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { after, before, test } from 'node:test';
import { createApp } from './app.js';
import { BODY_LIMIT } from './body.js';
import { Store } from './store.js';

const ADA = '{"id":"1","name":"Ada <é> & \\"co\\"","email":"ada@x"}';
const NOT_FOUND = '{"error":"not found"}';

let server;

// Serves one user, with the id 1.
before(async () => {
  server = createServer(createApp(new Store([JSON.parse(ADA)])));
  await once(server.listen(0, '127.0.0.1'), 'listening');
});

after(() => server.close());

// Sends a request and returns the status and the body. The target goes out as it is.
async function ask(
  method,
  path,
  body = '',
  headers = { 'Content-Length': Buffer.byteLength(body) },
) {
  const { address: host, port } = server.address();
  const asked = request({ host, port, method, path, headers });
  asked.end(body);
  const [answer] = await once(asked, 'response');
  const text = Buffer.concat(await answer.toArray());
  // The answer may come before the whole request is sent, but all of it must be taken.
  if (!asked.writableFinished) await once(asked, 'finish');
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.equal(answer.headers['content-length'], String(text.length));
  assert.equal(answer.headers.allow, undefined);
  return [answer.statusCode, text.toString()];
}

test('app: keeps the contract', async () => {
  for (const [method, path, body, status, expected] of [
    ['GET', '/users/1', '', 200, ADA],
    ['GET', '/users/1?x=y', '', 200, ADA],
    ['GET', '/users/2', '', 404, NOT_FOUND],
    ['GET', '/users/01', '', 404, NOT_FOUND],
    ['GET', '/users/%FF', '', 404, NOT_FOUND],
    ['GET', '/users/', '', 404, NOT_FOUND],
    ['GET', '/users/1/', '', 404, NOT_FOUND],
    ['GET', '//users/1', '', 404, NOT_FOUND],
    ['GET', '/users', '', 404, NOT_FOUND],
    ['GET', '/', '', 404, NOT_FOUND],
    ['OPTIONS', '*', '', 404, NOT_FOUND],
    ['DELETE', '/users/1', '', 404, NOT_FOUND],
    ['POST', '/users/1', '{}', 404, NOT_FOUND],
    ['POST', '/users/', '{}', 404, NOT_FOUND],
    ['PUT', '/users', '{}', 404, NOT_FOUND],
    ['POST', '/users', '', 400, '{"error":"invalid json"}'],
    ['POST', '/users', '{}', 400, '{"error":"name required"}'],
    ['POST', '/users', '{"name":"B"}', 400, '{"error":"invalid email"}'],
    [
      'POST',
      '/users?x=y',
      '{"id":9,"email":"b@x","name":"\\u003c\\u001F\u2028\\b"}',
      201,
      '{"id":"2","name":"<\\u001f\u2028\\b","email":"b@x"}',
    ],
    ['GET', '/users/2', '', 200, '{"id":"2","name":"<\\u001f\u2028\\b","email":"b@x"}'],
  ]) {
    assert.deepEqual(
      await ask(method, path, body),
      [status, expected],
      `${method} ${path} ${body}`,
    );
  }
});

test('app: limits the body', async () => {
  const head = '{"name":"B","email":"b@x","z":"';
  const bodyOf = (length) => `${head}${'z'.repeat(length - head.length - 2)}"}`;
  const chunked = { 'Transfer-Encoding': 'chunked' };
  const tooLarge = [413, '{"error":"body too large"}'];
  assert.equal((await ask('POST', '/users', bodyOf(BODY_LIMIT)))[0], 201);
  assert.equal((await ask('POST', '/users', bodyOf(BODY_LIMIT), chunked))[0], 201);
  assert.deepEqual(await ask('POST', '/users', bodyOf(BODY_LIMIT + 1)), tooLarge);
  assert.deepEqual(await ask('POST', '/users', bodyOf(BODY_LIMIT + 1), chunked), tooLarge);
  // Far more than the buffers of a socket hold.
  assert.deepEqual(await ask('POST', '/users', bodyOf(BODY_LIMIT * 256)), tooLarge);
  assert.deepEqual(await ask('GET', '/users/1'), [200, ADA]);
});
