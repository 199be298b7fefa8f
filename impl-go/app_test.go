package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

const ada = `{"id":"1","name":"Ada <é> & \"co\"","email":"ada@x"}`

// start serves one user, with the id 1.
func start(t *testing.T) *httptest.Server {
	t.Helper()
	store, err := loadStore(usersFile(t, "["+ada+"]"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(newApp(store))
	server.Config.DisableGeneralOptionsHandler = true // as in main
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// ask sends a request and returns the status and the body. The target goes out as it is.
func ask(t *testing.T, server *httptest.Server, method, target string, body io.Reader) (int, string) {
	t.Helper()
	request, err := http.NewRequest(method, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	// Unlike Parse, this takes `//users/1` for a path.
	request.URL, err = url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	request.URL.Scheme, request.URL.Host = "http", request.Host
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	header := answer.Header
	if header.Get("Content-Type") != "application/json" || header.Get("Allow") != "" ||
		header.Get("Content-Length") != strconv.Itoa(len(text)) {
		t.Errorf("%s %s: got %v for %d bytes", method, target, header, len(text))
	}
	return answer.StatusCode, string(text)
}

func TestAppKeepsTheContract(t *testing.T) {
	server := start(t)
	const missing = `{"error":"not found"}`
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"GET", "/users/1", "", 200, ada},
		{"GET", "/users/1?x=y", "", 200, ada},
		{"GET", "/users/2", "", 404, missing},
		{"GET", "/users/01", "", 404, missing},
		{"GET", "/users/%FF", "", 404, missing},
		{"GET", "/users/", "", 404, missing},
		{"GET", "/users/1/", "", 404, missing},
		{"GET", "//users/1", "", 404, missing},
		{"GET", "/users", "", 404, missing},
		{"GET", "/", "", 404, missing},
		{"OPTIONS", "*", "", 404, missing},
		{"DELETE", "/users/1", "", 404, missing},
		{"POST", "/users/1", "{}", 404, missing},
		{"POST", "/users/", "{}", 404, missing},
		{"PUT", "/users", "{}", 404, missing},
		{"POST", "/users", "", 400, `{"error":"invalid json"}`},
		{"POST", "/users", "{}", 400, `{"error":"name required"}`},
		{"POST", "/users", `{"name":"B"}`, 400, `{"error":"invalid email"}`},
		{
			"POST", "/users?x=y", `{"id":9,"email":"b@x","name":"\u003c\u001F\b"}`,
			201, `{"id":"2","name":"<\u001f\b","email":"b@x"}`,
		},
		{"GET", "/users/2", "", 200, `{"id":"2","name":"<\u001f\b","email":"b@x"}`},
	} {
		status, body := ask(t, server, c.method, c.target, strings.NewReader(c.body))
		if status != c.status || body != c.want {
			t.Errorf("%s %s %s: got %d %s", c.method, c.target, c.body, status, body)
		}
	}
}

func TestAppLimitsTheBody(t *testing.T) {
	server := start(t)
	bodyOf := func(length int) io.Reader {
		const head, tail = `{"name":"B","email":"b@x","z":"`, `"}`
		return strings.NewReader(head + strings.Repeat("z", length-len(head)-len(tail)) + tail)
	}
	// A reader of no known length is sent chunked.
	chunked := func(body io.Reader) io.Reader { return io.MultiReader(body) }
	for _, c := range []struct {
		body   io.Reader
		status int
	}{
		{bodyOf(bodyLimit), 201},
		{chunked(bodyOf(bodyLimit)), 201},
		{bodyOf(bodyLimit + 1), 413},
		{chunked(bodyOf(bodyLimit + 1)), 413},
	} {
		status, body := ask(t, server, "POST", "/users", c.body)
		if status != c.status || (status == 413 && body != `{"error":"body too large"}`) {
			t.Errorf("got %d %s, not %d", status, body, c.status)
		}
	}
	if status, body := ask(t, server, "GET", "/users/1", nil); status != 200 || body != ada {
		t.Errorf("afterwards: got %d %s", status, body)
	}
}
