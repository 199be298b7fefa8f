package main

import (
	"errors"
	"io"
	"net/http"
)

// bodyLimit is the greatest body that is read, in bytes.
const bodyLimit = 64 * 1024

// readBody reads a body of at most bodyLimit bytes, whether its length was announced or not.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	// Told of w, MaxBytesReader has the connection closed after the answer, and net/http
	// then waits before it resets the client, which so has the time to read the answer.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, &bodyTooLarge
	}
	if err != nil {
		// Only a client that left or that broke the framing gets here, and neither reads on.
		return nil, &invalidJSON
	}
	return body, nil
}
