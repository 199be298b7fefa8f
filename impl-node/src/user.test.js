import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INVALID_EMAIL, INVALID_JSON, NAME_REQUIRED } from './refusal.js';
import { parseNewUser } from './user.js';

test('user: valid bodies', () => {
  for (const [body, name, email] of [
    ['{"name":"Ada","email":"ada@x"}', 'Ada', 'ada@x'],
    [' {"email":"@","name":" "} ', ' ', '@'],
    ['{"name":"\\u00e9\\n\\"\\\\","email":"a@x"}', 'é\n"\\', 'a@x'],
    ['{"name":"A","email":"a@x","name":"B"}', 'B', 'a@x'],
    ['{"n\\u0061me":"A","email":"a@x"}', 'A', 'a@x'],
    ['{"id":7,"n":1e999,"x":[{"y":[null]}],"name":"A","email":"a@x"}', 'A', 'a@x'],
  ]) {
    assert.deepEqual(parseNewUser(Buffer.from(body)), { name, email }, body);
  }
});

test('user: refused bodies', () => {
  // As latin1, so that a byte over 0x7f can be written down by itself.
  for (const [body, refusal] of [
    ['', INVALID_JSON],
    ['null', INVALID_JSON],
    ['1', INVALID_JSON],
    ['"name"', INVALID_JSON],
    ['["Ada","ada@x"]', INVALID_JSON],
    ['{"name":"A","email":"a@x"', INVALID_JSON],
    ['{"name":"A","email":"a@x"} x', INVALID_JSON],
    ['{"name":"A","email":"a@x",}', INVALID_JSON],
    ['\xef\xbb\xbf{}', INVALID_JSON],
    ['{"name":"\xff","email":"a@x"}', INVALID_JSON],
    ['{"name":"A","email":"a@x","z":"\xff"}', INVALID_JSON],
    ['{"name":"A\nB","email":"a@x"}', INVALID_JSON],
    ['{}', NAME_REQUIRED],
    ['{"Name":"A","email":"a@x"}', NAME_REQUIRED],
    ['{"name":"","email":"a@x"}', NAME_REQUIRED],
    ['{"name":null,"email":"a@x"}', NAME_REQUIRED],
    ['{"name":7,"email":7}', NAME_REQUIRED],
    ['{"name":["A"],"email":"a@x"}', NAME_REQUIRED],
    ['{"__proto__":{"name":"A"},"email":"a@x"}', NAME_REQUIRED],
    ['{"name":"A"}', INVALID_EMAIL],
    ['{"name":"A","EMAIL":"a@x"}', INVALID_EMAIL],
    ['{"name":"A","email":null}', INVALID_EMAIL],
    ['{"name":"A","email":"a"}', INVALID_EMAIL],
  ]) {
    assert.equal(parseNewUser(Buffer.from(body, 'latin1')), refusal, body);
  }
});
