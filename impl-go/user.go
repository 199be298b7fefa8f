package main

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// user is a user as stored and as answered; the order of the fields is the order on the wire.
type user struct {
	ID    string `json:"id"`    // digits
	Name  string `json:"name"`  // never empty
	Email string `json:"email"` // holds an @
}

// newUser is a valid user that has no id yet.
type newUser struct {
	name  string // never empty
	email string // holds an @
}

// parseNewUser reads a request's body; fields other than name and email are skipped,
// whatever they hold.
func parseNewUser(body []byte) (newUser, *refusal) {
	// A struct would take `Name` for `name`, and encoding/json would repair broken UTF-8.
	// The map is nil after `null`, which is not an object but no error either.
	var fields map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil || fields == nil {
		return newUser{}, &invalidJSON
	}
	name, ok := text(fields["name"])
	if !ok || name == "" {
		return newUser{}, &nameRequired
	}
	email, ok := text(fields["email"])
	if !ok || !strings.Contains(email, "@") {
		return newUser{}, &invalidEmail
	}
	return newUser{name: name, email: email}, nil
}

// text decodes a field that must be a string. A pointer, because `null` leaves a plain
// string as it was.
func text(field json.RawMessage) (string, bool) {
	var value *string
	if json.Unmarshal(field, &value) != nil || value == nil {
		return "", false
	}
	return *value, true
}
