package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func usersFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStoreIDsCountUpFromTheGreatest(t *testing.T) {
	store, err := loadStore(usersFile(t,
		`[{"id":"9","name":"A","email":"a@x"},{"id":"10","name":"B","email":"b@x"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := store.get("9"); !ok || found.Name != "A" {
		t.Errorf("got %+v", found)
	}
	if _, ok := store.get("11"); ok {
		t.Error("11 is there before it was added")
	}
	for _, id := range []string{"11", "12"} {
		added := store.add(newUser{name: "C", email: "c@x"})
		if found, ok := store.get(id); !ok || added.ID != id || found != added {
			t.Errorf("%s: added %+v, got %+v", id, added, found)
		}
	}
}

func TestStoreRefusesWrongUsers(t *testing.T) {
	for _, text := range []string{
		``,
		`null`,
		`{}`,
		`[]`,
		`[{"id":"1","name":"A","email":"a@x"}`,
		`[{"id":1,"name":"A","email":"a@x"}]`,
		`[{"id":"one","name":"A","email":"a@x"}]`,
		`[{"id":"1","name":"A"}]`,
		`[{"id":"1","name":"","email":"a@x"}]`,
		`[{"id":"1","name":"A","email":"a"}]`,
		`[{"id":"1","name":"A","email":"a@x"},{"id":"1","name":"B","email":"b@x"}]`,
	} {
		path := usersFile(t, text)
		if _, err := loadStore(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestStoreNamesAMissingFile(t *testing.T) {
	_, err := loadStore("no/such.json")
	if err == nil || !strings.HasPrefix(err.Error(), `cannot read the users file "no/such.json"`) {
		t.Errorf("got %v", err)
	}
}
