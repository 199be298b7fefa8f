package main

import "net/http"

// refusal is one of the five ways in which a request is refused: a status and the body
// that goes with it.
type refusal struct {
	status  int
	Message string `json:"error"` // the whole body: {"error":"…"}
}

var (
	// No such user, path or method.
	notFound = refusal{http.StatusNotFound, "not found"}
	// The body is not a JSON object.
	invalidJSON = refusal{http.StatusBadRequest, "invalid json"}
	// The name is missing, not a string, or empty.
	nameRequired = refusal{http.StatusBadRequest, "name required"}
	// The email is missing, not a string, or holds no @.
	invalidEmail = refusal{http.StatusBadRequest, "invalid email"}
	// The body is over the limit.
	bodyTooLarge = refusal{http.StatusRequestEntityTooLarge, "body too large"}
)
