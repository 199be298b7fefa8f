import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('main.js', import.meta.url));
const HALF = 'POST /users HTTP/1.1\r\nHost: x\r\nContent-Length: 26\r\n\r\n{';
const folder = mkdtempSync(join(tmpdir(), 'users-'));
const good = join(folder, 'good.json');
const cut = join(folder, 'cut.json');
writeFileSync(good, '[{"id":"1","name":"Ada","email":"ada@x"}]');
writeFileSync(cut, '[{"id":"1","name":"Ada","ema');
after(() => rmSync(folder, { recursive: true }));

function launch(env) {
  return spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function start() {
  const child = launch({ PORT: '0', USERS_FILE: good });
  const [line] = await once(child.stdout, 'data');
  const { port, ...rest } = JSON.parse(/^ready (.*)\n$/.exec(line)[1]);
  assert.deepEqual(rest, { host: '127.0.0.1', workers: 1, runtime: `node ${process.version}` });
  return { child, port };
}

// Sends SIGTERM and waits.
async function stop(child) {
  const asked = performance.now();
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  assert.ok(performance.now() - asked < 2000);
}

async function open(port, text) {
  const socket = connect(port, '127.0.0.1');
  // The service may end a connection by a reset, which is its right when it stops.
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

test('main: stops with idle connections and half a request', async () => {
  const { child, port } = await start();
  const idle = Array.from({ length: 300 }, async () => {
    const socket = await open(port, 'GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'data');
  });
  await Promise.all(idle);
  await open(port, HALF);
  await stop(child);
});

test('main: finishes what is in flight', async () => {
  const { child, port } = await start();
  const socket = await open(port, HALF);
  // The service must have read the head before it is told to stop.
  await sleep(100);
  const stopped = stop(child);
  await sleep(100);
  socket.write('"name":"B","email":"b@x"}');
  const [answer] = await once(socket, 'data');
  assert.match(answer.toString(), /^HTTP\/1\.1 201 /);
  await stopped;
});

test('main: says in one line what keeps it from starting', async () => {
  const holder = createServer();
  await once(holder.listen(0, '127.0.0.1'), 'listening');
  const taken = String(holder.address().port);
  for (const [named, env] of [
    [taken, { PORT: taken, USERS_FILE: good }],
    ['cut.json', { PORT: '0', USERS_FILE: cut }],
    ['no/such.json', { PORT: '0', USERS_FILE: 'no/such.json' }],
    ['WORKERS', { PORT: '0', USERS_FILE: good, WORKERS: '2' }],
  ]) {
    const child = launch(env);
    const exited = once(child, 'exit');
    const stderr = Buffer.concat(await child.stderr.toArray()).toString();
    assert.match(stderr, /^users: [^\n]*\n$/);
    assert.ok(stderr.includes(named), stderr);
    assert.equal((await exited)[0], 1);
  }
  holder.close();
});
