// The users API in Node: 10,000 users in memory, read by id and added to.
//
// Read it in this order, which is the same in every language: main, settings, store, user,
// refusal, body, app.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { createApp } from './app.js';
import { readSettings } from './settings.js';
import { loadStore } from './store.js';

// How long requests in flight may take to finish once the service was told to stop. Short
// of the 2 seconds within which it must be gone.
const GRACE_MS = 1500;

const SERVER_OPTIONS = {
  // Idle connections stay as long as the client likes, as in the other languages; the
  // default of 5 s would end them between two uses.
  keepAliveTimeout: 0,
  // Both count from the opening of a connection, so they would end one that is not used yet.
  headersTimeout: 0,
  requestTimeout: 0,
  noDelay: true,
};

// Runs the service; whatever stops it from running is one line on standard error.
try {
  await run(process.env, process.stdout);
} catch (error) {
  console.error(`users: ${error.message}`);
  process.exitCode = 1;
}

// Serves until a signal comes, then finishes what is in flight.
async function run(env, stdout) {
  const settings = readSettings(env);
  const store = loadStore(settings.usersFile);
  const server = createServer(SERVER_OPTIONS, createApp(store));
  const { host, port } = settings;
  try {
    await once(server.listen(port, host), 'listening');
  } catch (error) {
    throw new Error(
      `cannot listen on host ${host}, port ${port} (set HOST and PORT to a free address): ${error.message}`,
    );
  }
  // Before the ready line: a signal that follows it at once must not find the default action.
  const stopped = new Promise((resolve) => {
    // Kept, not `once`: a second signal must not cut short the stop that the first one began.
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, resolve);
  });
  const ready = {
    host,
    port: server.address().port,
    workers: settings.workers,
    runtime: `node ${process.version}`,
  };
  stdout.write(`ready ${JSON.stringify(ready)}\n`);

  await stopped;
  server.close();
  // `close` ends the connections that are idle now; those that become idle later are ours.
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  // Requests still unfinished after the grace do not make the stop a failure.
  const deadline = setTimeout(() => server.closeAllConnections(), GRACE_MS);
  await once(server, 'close');
  clearInterval(sweep);
  clearTimeout(deadline);
}
