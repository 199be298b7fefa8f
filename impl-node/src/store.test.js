import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadStore } from './store.js';

function load(t, text) {
  const folder = mkdtempSync(join(tmpdir(), 'users-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'users.json');
  writeFileSync(path, text);
  return loadStore(path);
}

test('store: ids count up from the greatest', (t) => {
  const store = load(
    t,
    '[{"id":"9","name":"A","email":"a@x"},{"id":"10","name":"B","email":"b@x"}]',
  );
  assert.equal(store.get('9').name, 'A');
  assert.equal(store.get('11'), undefined);
  for (const id of ['11', '12']) {
    const added = store.add({ name: 'C', email: 'c@x' });
    assert.deepEqual(added, { id, name: 'C', email: 'c@x' });
    assert.equal(store.get(id), added);
  }
});

test('store: wrong users are refused', (t) => {
  for (const text of [
    '',
    'null',
    '{}',
    '[]',
    '[null]',
    '[{"id":"1","name":"A","email":"a@x"}',
    '[{"id":1,"name":"A","email":"a@x"}]',
    '[{"id":"one","name":"A","email":"a@x"}]',
    '[{"id":"1","name":"A"}]',
    '[{"id":"1","name":"","email":"a@x"}]',
    '[{"id":"1","name":"A","email":"a"}]',
    '[{"id":"1","name":"A","email":"a@x"},{"id":"1","name":"B","email":"b@x"}]',
    '[\n\n  x',
  ]) {
    assert.throws(() => load(t, text), /^Error: the users file ".*users\.json" is not .*$/, text);
  }
});

test('store: a missing file is named', () => {
  assert.throws(() => loadStore('no/such.json'), /cannot read the users file "no\/such\.json"/);
});
