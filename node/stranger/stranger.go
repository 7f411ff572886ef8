// Package stranger attacks a network from outside, as a program that anybody may write: it floods the HTTP interfaces
// of nodes, fills blocks with transactions, and holds the upload slots of workers. It is for testing a network of one's
// own. Parties that break the rules of a run are package role/adversary, validators that do package chain/deviant.
package stranger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/session"
)

// Report counts what an attack has done.
type Report struct {
	Answers      uint64 `json:"answers"`      // responses to requests of floods
	Transactions uint64 `json:"transactions"` // that nodes took
	Held         uint64 `json:"held"`         // uploads that have begun, and that the peer does not read
}

// Options of an attack.
type Options struct {
	Network string // addresses of HTTP interfaces, separated by commas
	Home    string // folder of the attacker's key; an attack that needs none ignores it
	Act     string // one of Names
}

// Error says why an attack cannot begin.
type Error struct{ What, Fix string }

func (e *Error) Error() string { return e.What + "; " + e.Fix }

// attack runs until the context ends, and counts in a report.
type attack struct {
	about string
	play  func(*assault, context.Context) error
}

var attacks = map[string]attack{
	"floods": {"send every node the requests that cost it most", (*assault).flood},
	"spams":  {"fill blocks with transactions at the default gas price", (*assault).spam},
	"holds":  {"hold the uploads of all workers, and read nothing", (*assault).hold},
}

// Names lists the attacks, in order.
func Names() []string {
	names := make([]string, 0, len(attacks))
	for name := range attacks {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// About says what an attack does.
func About(name string) string { return attacks[name].about }

// assault is an attack under way.
type assault struct {
	nodes  []string
	home   string
	chain  *client.Client
	mu     sync.Mutex
	report Report
}

// Play attacks a network until the context ends, and returns what it has done. It fails with an Error where the
// network or the key does not allow it.
func Play(ctx context.Context, o Options) (Report, error) {
	how, ok := attacks[o.Act]
	if !ok {
		return Report{}, &Error{fmt.Sprintf("stranger: there is no attack %q", o.Act),
			"use one of " + strings.Join(Names(), ", ")}
	}
	chain, _, err := session.DialReadOnly(ctx, o.Network)
	if err != nil {
		return Report{}, err
	}
	defer chain.Close()
	a := &assault{nodes: strings.Split(o.Network, ","), home: o.Home, chain: chain}
	if err := how.play(a, ctx); err != nil {
		return Report{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.report, nil
}

// count changes the report.
func (a *assault) count(add func(*Report)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	add(&a.report)
}

// key opens the folder of the attacker.
func (a *assault) key() (home.Home, error) {
	if a.home == "" {
		return home.Home{}, &Error{"stranger: this attack needs a key", "make one: starling worker identity --home DIR"}
	}
	return home.Read(a.home)
}

// pause waits a moment after a refusal.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
