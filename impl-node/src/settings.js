import { isIP } from 'node:net';

// Reads from `env` what the service needs to know to start; an empty value counts as not set.
export function readSettings(env) {
  // An address, never a name: a name may resolve to another address on another day.
  const host = env.HOST || '127.0.0.1';
  if (isIP(host) === 0) {
    throw new Error(
      `HOST is ${JSON.stringify(host)}, which is not an IP address such as 127.0.0.1`,
    );
  }
  // 0 takes a free port.
  const port = wholeNumber('PORT', env.PORT || '8080', 0, 65535);
  // A JSON array of users.
  const usersFile = env.USERS_FILE || '../data/users.json';
  // One process, whose one thread runs all JavaScript.
  const workers = wholeNumber('WORKERS', env.WORKERS || '1', 1, 1024);
  if (workers !== 1) {
    throw new Error(
      `WORKERS is "${workers}", but this implementation runs one process: unset it or set it to 1`,
    );
  }
  return { host, port, usersFile, workers };
}

function wholeNumber(name, value, least, most) {
  const number = /^[0-9]{1,9}$/.test(value) ? Number(value) : Number.NaN;
  if (!(number >= least && number <= most)) {
    throw new Error(
      `${name} is ${JSON.stringify(value)}, which is not a whole number from ${least} to ${most}`,
    );
  }
  return number;
}
