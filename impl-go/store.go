package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// store holds all users by id, and the id that the next one gets, behind one lock.
type store struct {
	mu     sync.RWMutex
	byID   map[string]user
	nextID uint64
}

// loadStore reads the users from a file that holds a JSON array of them.
func loadStore(path string) (*store, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the users file %q (set USERS_FILE): %w", path, err)
	}
	var users []user
	err = json.Unmarshal(text, &users)
	if err == nil {
		var loaded *store
		if loaded, err = newStore(users); err == nil {
			return loaded, nil
		}
	}
	return nil, fmt.Errorf("the users file %q is not a JSON array of users: %w", path, err)
}

// newStore takes users whose ids are whole numbers, each given once.
func newStore(users []user) (*store, error) {
	if len(users) == 0 {
		return nil, errors.New("it holds no users")
	}
	byID := make(map[string]user, len(users))
	lastID := uint64(0)
	for _, u := range users {
		number, err := strconv.ParseUint(u.ID, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("the id %q is not a string of digits", u.ID)
		}
		if u.Name == "" {
			return nil, fmt.Errorf("the user %q has no name", u.ID)
		}
		if !strings.Contains(u.Email, "@") {
			return nil, fmt.Errorf("the user %q has no valid email", u.ID)
		}
		if _, twice := byID[u.ID]; twice {
			return nil, fmt.Errorf("the id %q is there twice", u.ID)
		}
		lastID = max(lastID, number)
		byID[u.ID] = u
	}
	return &store{byID: byID, nextID: lastID + 1}, nil
}

// get returns the user with this id.
func (s *store) get(id string) (user, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.byID[id]
	return found, ok
}

// add keeps a new user under the next id.
func (s *store) add(fields newUser) user {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := user{
		ID:    strconv.FormatUint(s.nextID, 10),
		Name:  fields.name,
		Email: fields.email,
	}
	s.nextID++
	s.byID[added.ID] = added
	return added
}
