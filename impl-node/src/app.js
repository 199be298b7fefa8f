import { readBody } from './body.js';
import { NOT_FOUND, Refusal } from './refusal.js';
import { parseNewUser } from './user.js';

const USERS = '/users';
const USER = '/users/';

// Says which request goes where: a listener for the requests of a server.
export function createApp(store) {
  return (request, response) => {
    const path = request.url.split('?', 1)[0];
    if (request.method === 'GET' && path.startsWith(USER)) {
      getUser(response, store, path.slice(USER.length));
    } else if (request.method === 'POST' && path === USERS) {
      postUser(request, response, store);
    } else {
      refuse(response, NOT_FOUND);
    }
  };
}

function getUser(response, store, id) {
  const user = store.get(id);
  if (user === undefined) return refuse(response, NOT_FOUND);
  send(response, 200, user);
}

async function postUser(request, response, store) {
  const body = await readBody(request);
  if (body instanceof Refusal) return refuse(response, body);
  const fields = parseNewUser(body);
  if (fields instanceof Refusal) return refuse(response, fields);
  send(response, 201, store.add(fields));
}

function refuse(response, refusal) {
  send(response, refusal.status, refusal.body);
}

function send(response, status, value) {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}
