// Package crew is the members of a run and its terms: their roles, their measured speed, the weight of their stake
// where members decide, and the deadline of each duty that follows. It knows nothing of units or rounds.
package crew

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
)

// HighestAsk is the highest price of the verifiers with a seat: the budget counts each audit at it.
func (c Crew) HighestAsk() (price uint64) {
	for _, m := range c.Members {
		if m.Active && m.Role == Verifier {
			price = max(price, m.Price)
		}
	}
	return price
}

// Opened reports whether any member has committed a unit of the run.
func (c Crew) Opened() bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return m.Commits > 0 })
}

// Role of a member.
type Role uint8

// Roles are part of the format.
const (
	Worker   Role = 1 // trains units
	Verifier Role = 2 // re-executes units
	// Generator is a class of work of an offer and of a seat, and no role of a participant: a worker that draws answers
	// (terms.Rollout), and learns nothing. See Member.Generates.
	Generator Role = 3
)

// Classes are the classes of work.
var Classes = [...]Role{Worker, Verifier, Generator}

// ClassNamed is the class of work of a name, or 0.
func ClassNamed(name string) Role {
	for _, class := range Classes {
		if class.String() == name {
			return class
		}
	}
	return 0
}

// Registered is the role that a participant must have to offer a class of work: a generator is a worker.
func (r Role) Registered() Role {
	if r == Generator {
		return Worker
	}
	return r
}

// String returns the name of a role.
func (r Role) String() string {
	switch r {
	case Worker:
		return "worker"
	case Verifier:
		return "verifier"
	case Generator:
		return "generator"
	}
	return "no role"
}

// Member is one party of the run.
type Member struct {
	ID     string `cbor:"1,keyasint"` // account address
	Role   Role   `cbor:"2,keyasint"`
	Price  uint64 `cbor:"3,keyasint"` // uzen per 10^15 floating-point operations
	Active bool   `cbor:"4,keyasint"` // false: takes no further part in this run
	Why    string `cbor:"5,keyasint"` // reason for being inactive
	Passed uint32 `cbor:"6,keyasint"` // audits passed since the last failure; lowers the audit rate
	Missed uint32 `cbor:"7,keyasint"` // deadlines of units or audits missed in a row
	// smoothed blocks from assignment to commitment of a whole unit, or from draw to answer of an audit of one, in
	// 1/256 block; 0: not yet measured
	Speed   uint32 `cbor:"8,keyasint"`
	Silent  uint32 `cbor:"9,keyasint"`            // deadlines to attest missed in a row
	Commits uint32 `cbor:"10,keyasint"`           // commitments made
	Planted uint32 `cbor:"11,keyasint"`           // planted faults shown
	Since   int64  `cbor:"12,keyasint"`           // height at which Active or Why changed last
	Returns uint32 `cbor:"13,keyasint"`           // times that it came back after missed deadlines
	Stake   uint64 `cbor:"14,keyasint,omitempty"` // uzen that it had at stake when it took its seat
	// account that it works for, when it took its seat; its own if it works for no other
	Owner string `cbor:"15,keyasint,omitempty"`
	// it took its seat without the stake of its role, which it earns: all its units are audited, and it reduces nothing
	Earning bool `cbor:"16,keyasint,omitempty"`
	// what Speed is, for a unit that draws (terms.Rollout)
	DrawSpeed uint32 `cbor:"17,keyasint,omitempty"`
	// what rounding its part of the units of earlier rounds has left to it, see schedule.Due
	Owed int32 `cbor:"18,keyasint,omitempty"`
	// operations a second that the registry had measured when it took its seat; 0: none. In a run of stages rounds
	// correct it.
	Rate uint64 `cbor:"19,keyasint,omitempty"`
	// of a worker: it has the seat of a generator, and gets no unit that learns
	Generates bool `cbor:"20,keyasint,omitempty"`
}

// Class is the class of work of the member's seat: Generator, or else its role.
func (m Member) Class() Role {
	if m.Generates {
		return Generator
	}
	return m.Role
}

// Crew is the terms of a run, its members, and the pace that was observed.
type Crew struct {
	Terms   terms.Terms `cbor:"1,keyasint"`
	Members []Member    `cbor:"2,keyasint"` // in order of ID
	// the latest observed blocks from assignment to commitment of a whole unit, for the deadline
	TrainBlocks  []int64 `cbor:"9,keyasint,omitempty"`
	AuditBlocks  []int64 `cbor:"10,keyasint,omitempty"` // the latest observed blocks from draw to audit answer
	ReduceBlocks []int64 `cbor:"12,keyasint,omitempty"` // the latest observed blocks from draw to seal of a slice
	// the latest observed blocks from assignment to commitment of a unit that draws
	DrawBlocks []int64 `cbor:"17,keyasint,omitempty"`
}

// Member returns the member with an ID, active or not.
func (c Crew) Member(id string) (Member, bool) {
	i, ok := c.Index(id)
	if !ok {
		return Member{}, false
	}
	return c.Members[i], true
}

func (c Crew) Index(id string) (int, bool) {
	return slices.BinarySearchFunc(c.Members, id, func(m Member, id string) int { return cmp.Compare(m.ID, id) })
}

// Active lists the active members of a role, in order of ID.
func (c Crew) Active(r Role) []string {
	var ids []string
	for _, m := range c.Members {
		if m.Active && m.Role == r {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Learners lists the active workers that get units that learn, in order of ID.
func Learners(c Crew) []string {
	var ids []string
	for _, m := range c.Members {
		if m.Active && m.Class() == Worker {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func (c Crew) CountActive() int {
	n := 0
	for _, m := range c.Members {
		if m.Active {
			n++
		}
	}
	return n
}

func (c Crew) IsActive(id string) bool {
	i, ok := c.Index(id)
	return ok && c.Members[i].Active
}

func (c Crew) Convicted(id string) bool {
	m, _ := c.Member(id)
	return m.Why == reason.Verdict
}

// A guest has duties in a run without a seat in it: it was drawn from the whole network for an audit, or challenges a
// unit, with its stake as its bond. It trains and attests nothing, counts for no quorum, and the run does not wait for
// it.

// MaxGuests is how many guests a run stores. If there are more, those with nothing open are removed, the earliest
// first.
const MaxGuests = 256
