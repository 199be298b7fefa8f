import { BODY_TOO_LARGE, INVALID_JSON } from './refusal.js';

// The greatest body that is read, in bytes.
export const BODY_LIMIT = 64 * 1024;

// Reads a body of at most BODY_LIMIT bytes, whether its length was announced or not, or
// resolves to a refusal.
export function readBody(request) {
  return new Promise((resolve) => {
    const chunks = [];
    let length = 0;
    request.on('data', (chunk) => {
      length += chunk.length;
      // What is over the limit is still read, and dropped: a connection that is closed with
      // bytes unread is reset, and the reset may overtake the answer.
      if (length > BODY_LIMIT) resolve(BODY_TOO_LARGE);
      else chunks.push(chunk);
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    // Only a client that left or that broke the framing gets here, and neither reads on.
    request.on('error', () => resolve(INVALID_JSON));
  });
}
