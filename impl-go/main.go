// The users API in Go: 10,000 users in memory, read by id and added to.
//
// Read it in this order, which is the same in every language: main, settings, store, user,
// refusal, body, app.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// grace is how long requests in flight may take to finish once the service was told to
// stop. Short of the 2 seconds within which it must be gone.
const grace = 1500 * time.Millisecond

type ready struct {
	Host    string `json:"host"`
	Port    int    `json:"port"`
	Workers int    `json:"workers"`
	Runtime string `json:"runtime"`
}

// main runs the service; whatever stops it from running is one line on standard error.
func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := run(ctx, os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "users:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done, then finishes what is in flight.
func run(ctx context.Context, getenv func(string) string, stdout io.Writer) error {
	settings, err := readSettings(getenv)
	if err != nil {
		return err
	}
	store, err := loadStore(settings.usersFile)
	if err != nil {
		return err
	}
	if settings.workers > 0 {
		runtime.GOMAXPROCS(settings.workers)
	}
	address := net.JoinHostPort(settings.host.String(), strconv.Itoa(settings.port))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on host %s, port %d (set HOST and PORT to a free address): %w",
			settings.host, settings.port, err)
	}
	if err := printReady(stdout, ready{
		Host:    settings.host.String(),
		Port:    listener.Addr().(*net.TCPAddr).Port,
		Workers: runtime.GOMAXPROCS(0),
		Runtime: runtime.Version(),
	}); err != nil {
		return err
	}

	server := &http.Server{
		Handler: newApp(store),
		// Otherwise `OPTIONS *` is answered by net/http and not by the app.
		DisableGeneralOptionsHandler: true,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("cannot go on serving: %w", err)
	case <-ctx.Done():
	}
	deadline, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if server.Shutdown(deadline) != nil {
		// Requests still unfinished after the grace do not make the stop a failure.
		server.Close()
	}
	return nil
}

func printReady(stdout io.Writer, ready ready) error {
	line, err := json.Marshal(ready)
	if err == nil {
		_, err = fmt.Fprintf(stdout, "ready %s\n", line)
	}
	if err != nil {
		return fmt.Errorf("cannot print the ready line: %w", err)
	}
	return nil
}
