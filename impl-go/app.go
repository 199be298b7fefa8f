package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// newApp says which request goes where. It does without http.ServeMux, which answers `//`
// with a redirect and an unknown method with 405.
func newApp(store *store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, isUser := strings.CutPrefix(r.URL.Path, "/users/")
		switch {
		case r.Method == http.MethodGet && isUser:
			getUser(w, store, id)
		case r.Method == http.MethodPost && r.URL.Path == "/users":
			postUser(w, r, store)
		default:
			refuse(w, &notFound)
		}
	})
}

func getUser(w http.ResponseWriter, store *store, id string) {
	found, ok := store.get(id)
	if !ok {
		refuse(w, &notFound)
		return
	}
	send(w, http.StatusOK, found)
}

func postUser(w http.ResponseWriter, r *http.Request, store *store) {
	body, refused := readBody(w, r)
	if refused != nil {
		refuse(w, refused)
		return
	}
	fields, refused := parseNewUser(body)
	if refused != nil {
		refuse(w, refused)
		return
	}
	send(w, http.StatusCreated, store.add(fields))
}

func refuse(w http.ResponseWriter, refused *refusal) {
	send(w, refused.status, refused)
}

func send(w http.ResponseWriter, status int, value any) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // strings always encode
	}
	body.Truncate(body.Len() - 1) // the newline that Encode ends with
	w.Header().Set("Content-Type", "application/json")
	// net/http finds it by itself only for short answers, and sends the others chunked.
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	w.Write(body.Bytes()) // an error means that the client left
}
