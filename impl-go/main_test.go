package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// service starts the whole service on a free port and returns the port, what stops it, and
// where its end is told.
func service(t *testing.T) (port int, stop func(), ended chan error) {
	t.Helper()
	set := map[string]string{"PORT": "0", "USERS_FILE": usersFile(t, "["+ada+"]")}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	reader, writer := io.Pipe()
	ended = make(chan error, 1)
	go func() { ended <- run(ctx, env(set), writer) }()
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(line, "ready ")
	var told ready
	if err := json.Unmarshal([]byte(text), &told); err != nil || !ok {
		t.Fatalf("%v: %s", err, line)
	}
	if told.Host != "127.0.0.1" || told.Workers != runtime.GOMAXPROCS(0) || told.Runtime != runtime.Version() {
		t.Errorf("got %s", line)
	}
	return told.Port, cancel, ended
}

func dial(t *testing.T, port int, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

func expectEnd(t *testing.T, ended chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Second):
		t.Error("still there after 2 s")
	}
}

const half = "POST /users HTTP/1.1\r\nHost: x\r\nContent-Length: 26\r\n\r\n{"

func TestRunStopsWithIdleConnectionsAndHalfARequest(t *testing.T) {
	port, stop, ended := service(t)
	for range 300 {
		conn := dial(t, port, "GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := conn.Read(make([]byte, 1024)); err != nil {
			t.Fatal(err)
		}
	}
	dial(t, port, half)
	stop()
	expectEnd(t, ended)
}

func TestRunFinishesWhatIsInFlight(t *testing.T) {
	port, stop, ended := service(t)
	conn := dial(t, port, half)
	// The service must have read the head before it is told to stop.
	time.Sleep(100 * time.Millisecond)
	stop()
	time.Sleep(100 * time.Millisecond)
	fmt.Fprint(conn, `"name":"B","email":"b@x"}`)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Errorf("got %s", answer.Status)
	}
	expectEnd(t, ended)
}

func TestRunNamesAPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	set := map[string]string{"PORT": port, "USERS_FILE": usersFile(t, "["+ada+"]")}
	err = run(context.Background(), env(set), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "port "+port) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
