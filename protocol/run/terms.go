package run

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/audit"
)

// Limits of terms and votes.
const (
	MinBlocks = 5       // that a duty has: a message is seen and answered some blocks later, however little there is to do
	MaxBlocks = 1 << 20 // of a deadline, and of a wait that is remembered
	MaxID     = 128     // bytes of a job's or member's identifier
	MaxKey    = 128     // bytes of a public key or signature
)

// Validate says why terms cannot make a run.
func (t Terms) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrTerms}, args...)...)
	}
	d := t.Deadlines
	switch {
	case t.Job == "" || len(t.Job) > MaxID:
		return bad("job identifier of %d bytes, wanted 1 to %d", len(t.Job), MaxID)
	case t.Spec.IsZero():
		return bad("no digest of the work specification")
	case !validCID(t.SpecCID):
		return bad("CID of the specification has %d bytes, wanted 1 to %d", len(t.SpecCID), MaxCID)
	case t.Genesis.Round != 0 || t.Genesis.Root.IsZero() || !validCID(t.Genesis.CID):
		return bad("the genesis checkpoint needs round 0, a state root and a CID")
	case t.Rounds < 1 || t.Rounds > MaxRounds:
		return bad("%d rounds, wanted 1 to %d", t.Rounds, MaxRounds)
	case t.Units < 1 || t.Units > MaxUnits:
		return bad("%d units a round, wanted 1 to %d", t.Units, MaxUnits)
	case t.Segments < 1 || t.Segments > MaxSegments:
		return bad("%d segments, wanted 1 to %d", t.Segments, MaxSegments)
	case t.UnitFlops == 0:
		return bad("a unit needs a number of operations")
	case t.Sizes != nil && !t.sized():
		return bad("sizes %v of %d units of %d operations, wanted one for each, from 1 to all %d segments of the largest, "+
			"of equal operations", t.Sizes, t.Units, t.UnitFlops, t.Segments)
	case t.AuditPPM > 1_000_000:
		return bad("audit rate of %d parts per million, at most 1000000", t.AuditPPM)
	}
	switch {
	case t.Window < 1 || t.Window > MaxWindow:
		return bad("a window of %d rounds, wanted 1 to %d", t.Window, MaxWindow)
	case uint64(t.Window)*uint64(t.Units) > MaxOpen:
		return bad("a window of %d rounds of %d units, at most %d units may be open", t.Window, t.Units, MaxOpen)
	case t.Slices > MaxSlices:
		return bad("%d slices, at most %d", t.Slices, MaxSlices)
	case t.Sliced() && (t.Tolerance.DistancePPM > 0 || t.Screen != ScreenOff):
		return bad("rounds in slices of work that is tolerant, or whose updates are screened: nobody sees a whole update")
	case t.Carry > t.Window || t.Carry > 0 && t.Tolerance.DistancePPM > 0:
		return bad("%d rounds in a row whose units hand on a state, in a window of %d, or of tolerant work: nobody could "+
			"check that", t.Carry, t.Window)
	case t.Overlap && (t.Carry == 0 || t.Sliced()):
		return bad("rounds that overlap through %d rounds in a row and in %d slices: units go on with what they hand on "+
			"to themselves, and exchange whole updates", t.Carry, t.Slices)
	case d.Challenge < 0 || d.Challenge > MaxBlocks:
		return bad("%d blocks for challenges, wanted 0 to %d", d.Challenge, MaxBlocks)
	case t.Screen > ScreenLosses:
		return bad("screen %d, wanted 0 to %d", t.Screen, ScreenLosses)
	case t.Tolerance.CosinePPM > 1_000_000 || t.Tolerance.DistancePPM == 0 && t.Tolerance.CosinePPM > 0:
		return bad("a tolerance of distance %d and cosine %d parts per million, wanted a distance above 0 and a cosine up "+
			"to 1000000", t.Tolerance.DistancePPM, t.Tolerance.CosinePPM)
	}
	for _, blocks := range []int64{d.Train, d.Audit, d.Attest} {
		if blocks < 1 || blocks > MaxBlocks {
			return bad("deadline of %d blocks, wanted 1 to %d", blocks, MaxBlocks)
		}
	}
	return nil
}

// Floor is the least rate at which the units of a worker are audited, in parts per million, whatever its history.
func (t Terms) Floor() uint32 {
	if t.AuditPPM > 0 && t.Tolerance.DistancePPM > 0 {
		return max(t.AuditPPM, audit.TolerantPPM)
	}
	return t.AuditPPM
}

// New begins a run at a height: round 0, waiting for a beacon that deals the units. Only ID, Role, Price,
// Passed, Stake and Owner of the members are taken.
func New(t Terms, members []Member, height int64) (State, error) {
	if err := t.Validate(); err != nil {
		return State{}, err
	}
	if len(members) > MaxMembers {
		return State{}, fmt.Errorf("%w: %d members, at most %d", ErrTerms, len(members), MaxMembers)
	}
	s := State{Terms: t, Phase: Assign, Since: height, RoundState: RoundState{Base: t.Genesis}}
	for _, m := range members {
		if m.ID == "" || len(m.ID) > MaxID || (m.Role != Worker && m.Role != Verifier) {
			return State{}, fmt.Errorf("%w: member %q with role %d", ErrTerms, m.ID, m.Role)
		}
		s.Members = append(s.Members, Member{ID: m.ID, Role: m.Role, Price: m.Price, Passed: m.Passed, Active: true,
			Since: height, Stake: m.Stake, Owner: m.owner()})
	}
	slices.SortFunc(s.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(s.Members); i++ {
		if s.Members[i-1].ID == s.Members[i].ID {
			return State{}, fmt.Errorf("%w: %s is a member twice", ErrTerms, s.Members[i].ID)
		}
	}
	if len(s.Active(Worker)) == 0 {
		return State{}, fmt.Errorf("%w: no worker", ErrTerms)
	}
	return s, nil
}

// ahead is how many rounds at most are trained while a group of those before them becomes final.
const ahead = 32

// Window is how many rounds of a job of so many units may be open at a time: a group of those in which units hand on a
// state, and up to as many of the next, so that these are trained while it becomes final, or some rounds where they
// hand on none.
func Window(units, carry uint32) uint32 {
	return max(8, carry, min(2*carry, carry+ahead, MaxWindow, MaxOpen/max(1, units)))
}

func validCID(c string) bool { return c != "" && len(c) <= MaxCID }
