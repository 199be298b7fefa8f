import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSettings } from './settings.js';

test('settings: defaults', () => {
  assert.deepEqual(readSettings({ PORT: '', WORKERS: '' }), {
    host: '127.0.0.1',
    port: 8080,
    usersFile: '../data/users.json',
    workers: 1,
  });
});

test('settings: values', () => {
  assert.deepEqual(readSettings({ HOST: '::1', PORT: '0', USERS_FILE: 'x.json', WORKERS: '1' }), {
    host: '::1',
    port: 0,
    usersFile: 'x.json',
    workers: 1,
  });
});

test('settings: wrong values are named', () => {
  for (const [name, value] of [
    ['HOST', 'localhost'],
    ['HOST', '127.0.0.1:80'],
    ['PORT', 'http'],
    ['PORT', '-1'],
    ['PORT', '+1'],
    ['PORT', '65536'],
    ['WORKERS', '0'],
    ['WORKERS', '2'],
    ['WORKERS', 'two\nlines'],
  ]) {
    assert.throws(
      () => readSettings({ [name]: value }),
      ({ message }) =>
        message.startsWith(`${name} is ${JSON.stringify(value)}, `) && !message.includes('\n'),
      `${name}=${value}`,
    );
  }
});
