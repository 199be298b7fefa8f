// One of the five ways in which a request is refused: a status and the body that goes with it.
export class Refusal {
  constructor(status, error) {
    this.status = status;
    // The whole body: {"error":"…"}.
    this.body = { error };
  }
}

// No such user, path or method.
export const NOT_FOUND = new Refusal(404, 'not found');
// The body is not a JSON object.
export const INVALID_JSON = new Refusal(400, 'invalid json');
// The name is missing, not a string, or empty.
export const NAME_REQUIRED = new Refusal(400, 'name required');
// The email is missing, not a string, or holds no @.
export const INVALID_EMAIL = new Refusal(400, 'invalid email');
// The body is over the limit.
export const BODY_TOO_LARGE = new Refusal(413, 'body too large');
