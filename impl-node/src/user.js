import { isUtf8 } from 'node:buffer';
import { INVALID_EMAIL, INVALID_JSON, NAME_REQUIRED } from './refusal.js';

// Reads a request's body: the name and the email of a user that has no id yet, or a
// refusal. Fields other than these two are skipped, whatever they hold.
export function parseNewUser(body) {
  const fields = parseJson(body);
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return INVALID_JSON;
  const { name, email } = fields;
  if (typeof name !== 'string' || name === '') return NAME_REQUIRED;
  if (typeof email !== 'string' || !email.includes('@')) return INVALID_EMAIL;
  return { name, email };
}

function parseJson(body) {
  // `toString` would repair broken UTF-8.
  if (!isUtf8(body)) return undefined;
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
