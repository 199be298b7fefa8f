import { readFileSync } from 'node:fs';

// All users by id, and the id that the next one gets. No lock: one thread runs all of it.
export class Store {
  #byId = new Map();
  #nextId;

  // Takes users whose ids are whole numbers, each given once.
  constructor(users) {
    if (!Array.isArray(users)) throw new Error('it holds no array');
    if (users.length === 0) throw new Error('it holds no users');
    let lastId = 0;
    for (const user of users) {
      const { id, name, email } = user ?? {};
      if (typeof id !== 'string' || !/^[0-9]{1,9}$/.test(id)) {
        throw new Error(`the id ${JSON.stringify(id)} is not a string of digits`);
      }
      if (typeof name !== 'string' || name === '') throw new Error(`the user "${id}" has no name`);
      if (typeof email !== 'string' || !email.includes('@')) {
        throw new Error(`the user "${id}" has no valid email`);
      }
      if (this.#byId.has(id)) throw new Error(`the id "${id}" is there twice`);
      lastId = Math.max(lastId, Number(id));
      this.#byId.set(id, { id, name, email });
    }
    this.#nextId = lastId + 1;
  }

  // The user with this id.
  get(id) {
    return this.#byId.get(id);
  }

  // Keeps a new user under the next id.
  add({ name, email }) {
    const user = { id: String(this.#nextId), name, email };
    this.#nextId += 1;
    this.#byId.set(user.id, user);
    return user;
  }
}

// Reads the users from a file that holds a JSON array of them.
export function loadStore(path) {
  let text;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(
      `cannot read the users file ${JSON.stringify(path)} (set USERS_FILE): ${error.message}`,
    );
  }
  try {
    return new Store(JSON.parse(text));
  } catch (error) {
    // The message of JSON.parse quotes the text, line ends and all.
    const cause = error.message.replaceAll(/\s+/g, ' ');
    throw new Error(
      `the users file ${JSON.stringify(path)} is not a JSON array of users: ${cause}`,
    );
  }
}
