package head

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/starling-network/starling/internal/keyfile"
	"github.com/starling-network/starling/node/folder"
)

// ErrMoved is returned for a folder whose tickets name another address than that of the head.
var ErrMoved = errors.New("head: its tickets name another address")

// The folder of a head.
const (
	fileKey    = "head.key"
	dirTickets = "tickets"
	machine    = "machine-" // the names of tickets, as those of invitations
)

// Members are the machines that may use a head: those whose tickets are in its folder.
type Members struct {
	dir     string
	address string // that each ticket names

	mu   sync.Mutex
	of   map[string]string // names, by the text of the key
	live map[*use]bool
}

// use is a request of a member, or a connection that it has through the head.
type use struct {
	key string
	end context.CancelFunc
}

// OpenFolder reads the folder of a head, and makes what is missing: its key, and tickets for a number of machines. It
// returns ErrMoved, and otherwise skips tickets as Read does.
func OpenFolder(dir, address string, machines int) (key ed25519.PrivateKey, m *Members, skipped, err error) {
	m = &Members{dir: filepath.Join(dir, dirTickets), address: address, live: map[*use]bool{}}
	if err = os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, nil, nil, err
	}
	if key, err = readKey(filepath.Join(dir, fileKey)); err != nil {
		return nil, nil, nil, err
	}
	for n := 1; n <= machines; n++ {
		path := filepath.Join(m.dir, fmt.Sprint(machine, n))
		if _, err = os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			text := NewTicket(key.Public().(ed25519.PublicKey), address).String() + "\n"
			err = folder.WriteSecret(path, []byte(text))
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	if skipped, err = m.Read(); errors.Is(skipped, ErrMoved) {
		return nil, nil, nil, skipped
	}
	return key, m, skipped, err
}

// readKey reads the key of a head, or makes it.
func readKey(path string) (ed25519.PrivateKey, error) {
	seed, err := keyfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		seed = make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(seed) // never fails
		err = keyfile.Write(path, seed)
	}
	if err != nil {
		return nil, err
	}
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("head: %s has %d bytes and is no key: without the file a new one is made, with which "+
			"older tickets are of no use", path, len(seed))
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Read reads the tickets again, and ends the connections of members that have none any more. A file that is no ticket
// for this address lets no machine in: it is skipped, with its reason, and changes nothing for the others. The tickets
// of before stay when it returns an error: the folder cannot be read.
func (m *Members) Read() (skipped, err error) {
	entries, err := os.ReadDir(m.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // no folder: all tickets are deleted
		return nil, err
	}
	of := map[string]string{}
	for _, e := range entries {
		if !isTicket(e) {
			continue
		}
		t, err := ReadTicket(filepath.Join(m.dir, e.Name()))
		if err == nil && t.Address != m.address {
			err = fmt.Errorf("%w: it has %s, and this is %s", ErrMoved, t.Address, m.address)
		}
		if err != nil {
			skipped = errors.Join(skipped, fmt.Errorf("%s: %w", e.Name(), err))
			continue
		}
		of[string(t.Public())] = e.Name()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of = of
	for u := range m.live {
		if _, still := of[u.key]; !still {
			u.end()
		}
	}
	return skipped, nil
}

// isTicket reports whether an entry has the name of a ticket: no other file of the folder lets a machine in, such as
// the part of one that was not written to its end.
func isTicket(e fs.DirEntry) bool {
	number, ok := strings.CutPrefix(e.Name(), machine)
	_, err := strconv.ParseUint(number, 10, 32)
	return ok && err == nil && e.Type().IsRegular()
}

// let begins a use of the head by a key, whose context ends when its ticket is gone, and returns the name of the
// ticket; not if the key has none.
func (m *Members) let(ctx context.Context, key ed25519.PublicKey) (of context.Context, done func(), name string,
	known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name, known = m.of[string(key)]; !known {
		return ctx, func() {}, "", false
	}
	ctx, cancel := context.WithCancel(ctx)
	u := &use{string(key), cancel}
	m.live[u] = true
	return ctx, func() {
		cancel()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.live, u)
	}, name, true
}

// knows reports whether a key has a ticket.
func (m *Members) knows(key ed25519.PublicKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.of[string(key)]
	return known
}

// Dir is the folder of the tickets.
func (m *Members) Dir() string { return m.dir }

// Count is how many tickets there are.
func (m *Members) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.of)
}
