package main

import (
	"fmt"
	"strings"
	"testing"
)

func env(set map[string]string) func(string) string {
	return func(name string) string { return set[name] }
}

func TestSettingsDefaults(t *testing.T) {
	read, err := readSettings(env(nil))
	if err != nil {
		t.Fatal(err)
	}
	if read.host.String() != "127.0.0.1" || read.port != 8080 ||
		read.usersFile != "../data/users.json" || read.workers != 0 {
		t.Errorf("got %+v", read)
	}
}

func TestSettingsValues(t *testing.T) {
	read, err := readSettings(env(map[string]string{
		"HOST": "::1", "PORT": "0", "USERS_FILE": "x.json", "WORKERS": "3",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if read.host.String() != "::1" || read.port != 0 || read.usersFile != "x.json" || read.workers != 3 {
		t.Errorf("got %+v", read)
	}
}

func TestSettingsWrongValuesAreNamed(t *testing.T) {
	for _, set := range [][2]string{
		{"HOST", "localhost"},
		{"HOST", "127.0.0.1:80"},
		{"PORT", "http"},
		{"PORT", "-1"},
		{"PORT", "+1"},
		{"PORT", "65536"},
		{"WORKERS", "0"},
		{"WORKERS", "two\nlines"},
	} {
		_, err := readSettings(env(map[string]string{set[0]: set[1]}))
		want := fmt.Sprintf("%s is %q, which", set[0], set[1])
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
