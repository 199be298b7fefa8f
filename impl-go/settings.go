package main

import (
	"fmt"
	"net/netip"
	"strconv"
)

// settings is what the service needs to know to start.
type settings struct {
	// An address, never a name: a name may resolve to another address on another day.
	host netip.Addr
	// 0 takes a free port.
	port int
	// A JSON array of users.
	usersFile string
	// What GOMAXPROCS is set to; 0 leaves it to the runtime, which knows of CPU affinity.
	workers int
}

// readSettings reads the settings through getenv; an empty value counts as not set.
func readSettings(getenv func(string) string) (settings, error) {
	read := settings{
		host:      netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		port:      8080,
		usersFile: "../data/users.json",
	}
	var err error
	if value := getenv("HOST"); value != "" {
		if read.host, err = netip.ParseAddr(value); err != nil {
			return settings{}, fmt.Errorf("HOST is %q, which is not an IP address such as 127.0.0.1", value)
		}
	}
	if value := getenv("PORT"); value != "" {
		if read.port, err = wholeNumber("PORT", value, 0, 65535); err != nil {
			return settings{}, err
		}
	}
	if value := getenv("USERS_FILE"); value != "" {
		read.usersFile = value
	}
	if value := getenv("WORKERS"); value != "" {
		if read.workers, err = wholeNumber("WORKERS", value, 1, 1024); err != nil {
			return settings{}, err
		}
	}
	return read, nil
}

func wholeNumber(name, value string, least, most uint64) (int, error) {
	number, err := strconv.ParseUint(value, 10, 16)
	if err != nil || number < least || number > most {
		return 0, fmt.Errorf("%s is %q, which is not a whole number from %d to %d", name, value, least, most)
	}
	return int(number), nil
}
