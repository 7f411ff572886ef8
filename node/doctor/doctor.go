// Package doctor examines the machine that it runs on: whether Starling can work here, how fast, and how to remove
// obstacles. A check looks at one thing and returns a finding.
//
// It makes no lasting change, and connects only to the given validator and to some participants of its network, which
// it asks whether they can dial this machine.
package doctor

import (
	"context"
	"fmt"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"   // nothing to do
	Warn Level = "warn" // works, but not as well as it could
	Fail Level = "fail" // Starling cannot work, or its work would be refused
)

// Finding is what a check found.
type Finding struct {
	Check string `json:"check"` // stable, such as "disk"
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"` // what to do, if there is something
}

// Report is all findings, in the order of the checks.
type Report struct {
	Level    Level     `json:"level"` // the worst of the findings
	Findings []Finding `json:"findings"`
}

// Options say what is examined.
type Options struct {
	Version string   // of the binary
	Dir     string   // where data is to be kept; it or its parent must exist
	Network string   // HTTP interface of a validator; "": no network is looked at
	ChainID string   // what its chain must be called; "": anything
	Home    string   // folder of a party; "": none is looked at
	Listen  []string // multiaddrs that a worker is to listen on
}

// A check looks at one thing.
type check struct {
	name string
	look func(ctx context.Context, o Options) Finding
}

var checks = []check{
	{"version", version}, {"cpu", processor}, {"gpu", graphics}, {"device", devices}, {"memory", ram}, {"disk", disk},
	{"loopback", loopback}, {"numerics", numerics}, {"chain", chain}, {"clock", clock}, {"keys", keys}, {"lock", lock},
	{"listen", listen}, {"nat", nat},
}

// Examine makes every check. It ends early only with ctx, whose error it returns.
func Examine(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Level: OK}
	for _, c := range checks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f := c.look(ctx, o)
		f.Check = c.name
		r.Findings = append(r.Findings, f)
		if f.Level == Fail || f.Level == Warn && r.Level == OK {
			r.Level = f.Level
		}
	}
	return r, nil
}

// least grades an amount in bytes: below need Starling cannot work, below want not well.
func least(amount, need, want uint64, text, fix string) Finding {
	f := Finding{Level: OK, Text: text}
	if amount < want {
		f.Level, f.Fix = Warn, fix
	}
	if amount < need {
		f.Level = Fail
	}
	return f
}

const gibibyte = 1 << 30

func gib(n uint64) string { return fmt.Sprintf("%.1f GiB", float64(n)/gibibyte) }
