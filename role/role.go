// Package role has the duties of a process as step functions over events: Step(event) -> actions. The subpackages
// worker, verifier, aggregator and consumer are the roles; this package is the vocabulary they share.
//
// A role has no clock, no random source, no goroutine and no I/O. node/ feeds it real blocks and the results of its
// actions; sim/ feeds it simulated ones. Roles are level-triggered: every block carries the whole state of the run,
// and a role asks for every action that is missing between that state and its duty. A lost event, a failed action or a
// restart is therefore healed by the next block.
package role

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Part names a slice of the checkpoint after a round whose last commitment is in the block Closed.
type Part struct {
	Round  uint32
	Closed int64
	Slice  uint32
}

// Event is the input of a role: a new block, or the end of an action.
type Event interface{ event() }

// The events.
type (
	// Block is the state of the run after a block.
	Block struct {
		Height   int64
		Run      run.State
		Disputes []dispute.Dispute // all open ones at least
	}
	// Loaded says that a checkpoint is in memory, verified.
	Loaded struct{ Action Load }
	// Advanced says that the committed updates of a round were combined into Next, which is in memory and stored.
	Advanced struct {
		Action Advance
		Next   terms.Checkpoint
		Odd    []uint32 // indexes of the units whose update is an outlier of its round
	}
	// Trained says that a unit is computed, and its update stored but not yet readable by others.
	Trained struct {
		Action Train
		Commit work.Commitment
	}
	// Misled says that a unit cannot be trained: the state that it starts from, to which this unit of an earlier round
	// is committed, is false.
	Misled struct {
		Action Train
		Round  uint32
		Unit   uint32
	}
	// Checked is the outcome of re-executing a unit.
	Checked struct {
		Action Check
		Right  bool
		// unless Right: the first segment root that differs; their number: only the update differs; after that only the
		// carried state
		Differ uint32
		// not nil: the unit cannot be executed, since a state that was committed in this round is false, by this unit
		Wrong  *uint32
		Source uint32
		Seal   canon.Digest // if Right: root of the state over keyed leaves
	}
	// Reduced says that a slice of the next checkpoint is computed and stored. Only members that know its CID can fetch
	// it.
	Reduced struct {
		Action Reduce
		CID    string
	}
	// Measured is the finding of the exact execution of a tolerant unit, compared to its worker's update.
	Measured struct {
		Action  Measure
		Finding audit.Finding
	}
	// Drain tells the member to begin no new work, and to leave.
	Drain struct{}
	// Pause tells the member to set its work aside until Resume: it answers for what it did, and begins nothing else. A
	// second one changes Until.
	Pause struct {
		Until int64 // height at which it will hardly be over yet; 0: that is not known
	}
	// Resume ends a pause.
	Resume struct{}
	// Encrypted says that the data of the job is encrypted: the member can execute the units that it has, or was drawn
	// for, and no other.
	Encrypted struct{}
	// Finished says that an action with no result of its own succeeded.
	Finished struct{ Action Action }
	// Failed says that an action did not succeed. It may be asked for again.
	Failed struct {
		Action Action
		Err    error
	}
)

func (Block) event()    {}
func (Loaded) event()   {}
func (Advanced) event() {}
func (Trained) event()  {}
func (Misled) event()   {}
func (Checked) event()  {}
func (Reduced) event()  {}
func (Measured) event() {}
func (Drain) event()    {}
func (Pause) event()    {}
func (Resume) event()   {}
func (Finished) event() {}
func (Failed) event()   {}

func (Encrypted) event() {}

// Action is a request of a role. Its key is equal for two actions of which only one need be performed.
type Action interface{ Key() string }

// The actions.
type (
	// Load fetches a checkpoint and verifies it. Answered by Loaded.
	Load struct{ Checkpoint terms.Checkpoint }
	// Train computes a unit. Answered by Trained, or by Misled.
	Train struct {
		Work work.UnitID
		Base terms.Checkpoint
	}
	// Commit sends the commitment to the chain.
	Commit struct {
		Work   work.UnitID
		Commit work.Commitment
	}
	// Reveal lets others read the update of a committed unit, recomputing it if it was lost.
	Reveal struct {
		Work work.UnitID
		Base terms.Checkpoint
		CID  string
	}
	// Check re-executes a unit and compares it with the commitment. Answered by Checked.
	Check struct {
		Work    work.UnitID
		Base    terms.Checkpoint
		Worker  string
		Commit  work.Commitment
		Segment uint32 // to the end of which the unit is executed, counted from 1; 0: all of it
	}
	// Measure re-executes a unit of a tolerant run and compares the updates. Answered by Measured.
	Measure struct {
		Work   work.UnitID
		Base   terms.Checkpoint
		Worker string
		Commit work.Commitment
	}
	// Report binds the verifier to its finding, and tells the chain whether the update is outside the tolerance.
	Report struct {
		Work    work.UnitID
		Seal    canon.Digest
		Outside bool
	}
	// ShowReport shows the chain what a report is bound to.
	ShowReport struct {
		Work    work.UnitID
		Finding audit.Finding
		Salt    canon.Digest
	}
	// Pass tells the chain that an audit found the commitment right.
	Pass struct {
		Work work.UnitID
		Seal canon.Digest
	}
	// Unseal opens the seal of a Pass at the tile that the question draws.
	Unseal struct {
		Work     work.UnitID
		Base     terms.Checkpoint
		Question canon.Digest
		Segment  uint32 // to the end of which the unit was executed, counted from 1; 0: all of it
	}
	// Unmask shows the chain that the fault in a commitment was planted.
	Unmask struct {
		Work     work.UnitID
		Nonce    canon.Digest
		Segments []canon.Digest
	}
	// Confess tells the chain that the commitment of the sender is wrong.
	Confess struct {
		Work work.UnitID
	}
	// Suspect tells the chain that the update of a unit is an outlier.
	Suspect struct {
		Work work.UnitID
	}
	// Challenge opens a dispute about a commitment, which its digest distinguishes from one that replaces it.
	Challenge struct {
		Work       work.UnitID
		Segment    uint32
		Commitment canon.Digest
	}
	// Move makes the next move in a dispute, for the party that the role is.
	Move struct {
		Game   dispute.Dispute
		Commit work.Commitment
		Base   terms.Checkpoint
	}
	// Advance fetches the committed updates that the next checkpoint is made of and combines them, or in a run with slices
	// fetches these and puts them together. With Executes, it executes the units whose updates no member serves.
	// Answered by Advanced.
	Advance struct {
		Base     terms.Checkpoint
		Rounds   []uint32   // that the units are of, in order; none: that of Base
		Units    work.Units // of all these rounds, as many of each
		Closed   int64
		Slices   []progress.Slice // all agreed; none in a run without slices
		Executes bool
		Data     bool `json:",omitempty"` // the consumer has named data for the round: the member must have them
	}
	// Reduce fetches one slice of every committed update of the round and combines them. Answered by Reduced.
	Reduce struct {
		Part  Part
		Base  terms.Checkpoint
		Units work.Units
	}
	// SealSlice binds the member to its result for a slice.
	SealSlice struct {
		Part Part
		Seal canon.Digest
	}
	// ShowSlice tells the chain the result for a slice.
	ShowSlice struct {
		Part Part
		CID  string
	}
	// Probe fetches the slice of the update of a unit, the answers that it has drawn or, with Data, what the consumer gave
	// it, which another member misses, and keeps them. Or it fetches what a stage under audit has received.
	Probe struct {
		Work work.UnitID
		Base terms.Checkpoint
		Unit work.Unit
		Data bool
	}
	// Attest signs and sends a checkpoint to the chain.
	Attest struct {
		Next    terms.Checkpoint
		Updates []string
	}
	// Refute shows the chain that a checkpoint does not follow from the updates of its round. Any account may send it.
	Refute struct {
		Wrong terms.Checkpoint // attested
		Base  terms.Checkpoint // that its round started from
		Units work.Units       // of the round
	}
	// Missing tells the chain that the update of a unit cannot be fetched; in a run with slices, which of it. Or the
	// answers that a unit has drawn cannot be, or, with a slice, what a stage under audit has received on a link.
	Missing struct {
		Work  work.UnitID
		Slice uint32
	}
	// LacksData tells the chain that the data which the consumer has named for the round of a unit cannot be had.
	LacksData struct{ Work work.UnitID }
	// Prove answers the task of a member on probation. No seal says that it reached another state than the committed one.
	Prove struct {
		Work work.UnitID
		Seal canon.Digest
	}
	// Leave ends the member's part in the run in good standing.
	Leave struct{}
	// Return tells the chain that a member which is out over missed deadlines is back.
	Return struct{}
	// Stop ends an action in progress, given its key, whose result is no longer needed. It is not answered.
	Stop struct {
		Of   string
		Keep bool // the member is paused and asks for the action again: ErrPaused is the cause
	}
	// Depart says that the member has no duties left in the run. It is not answered.
	Depart struct{}
)

// Key implements Action.
func (a Load) Key() string    { return fmt.Sprintf("load %d %s", a.Checkpoint.Round, a.Checkpoint.Root) }
func (a Train) Key() string   { return key("train", a.Work) }
func (a Commit) Key() string  { return key("commit", a.Work) }
func (a Reveal) Key() string  { return key("reveal", a.Work) }
func (a Check) Key() string   { return key("check", a.Work) }
func (a Measure) Key() string { return key("measure", a.Work) }
func (a Report) Key() string  { return key("report", a.Work) }
func (a Pass) Key() string    { return key("pass", a.Work) }
func (a Missing) Key() string { return key("missing", a.Work) }

// Key implements Action.
func (a LacksData) Key() string { return key("lacks data", a.Work) }
func (a Unseal) Key() string    { return key("unseal", a.Work) }
func (a Unmask) Key() string    { return key("unmask", a.Work) }
func (a Confess) Key() string   { return key("confess", a.Work) }
func (a Suspect) Key() string   { return key("suspect", a.Work) }
func (a Probe) Key() string     { return key("probe", a.Work) }

// Key implements Action.
func (a ShowReport) Key() string { return key("show report", a.Work) }

// Key implements Action.
func (a Reduce) Key() string    { return a.Part.key("reduce") }
func (a SealSlice) Key() string { return a.Part.key("seal slice") }
func (a ShowSlice) Key() string { return a.Part.key("show slice") + " " + a.CID }
func (a Prove) Key() string     { return key("prove", a.Work) }
func (a Leave) Key() string     { return "leave" }
func (a Return) Key() string    { return "return" }
func (a Stop) Key() string      { return "stop " + a.Of }
func (a Depart) Key() string    { return "depart" }

// Key implements Action.
func (a Challenge) Key() string { return key("challenge", a.Work) }

// Key implements Action. The number of moves distinguishes the turns of a dispute.
func (a Move) Key() string {
	g := a.Game
	c := g.Config
	return fmt.Sprintf("move %d/%d.%d of %s against %s, turn %v", c.Round, c.Unit, c.Attempt, c.Challenger, c.Asserter,
		g.Moves)
}

// Key implements Action. The updates distinguish two compositions of a round, and the slices two findings. Without
// updates the checkpoint distinguishes the time before a rollback from that after it.
func (a Advance) Key() string {
	size := 128
	for _, u := range a.Units {
		size += len(u.Commit.UpdateCID) + 1
	}
	key := make([]byte, 0, size)
	if a.Executes {
		key = append(key, "execute and "...)
	}
	key = strconv.AppendUint(append(key, "advance "...), uint64(a.Base.Round), 10)
	key = append(key, " ["...)
	for i, u := range a.Units {
		if i > 0 {
			key = append(key, ' ')
		}
		key = append(key, u.Commit.UpdateCID...)
	}
	key = append(key, ']')
	if len(a.Units) == 0 {
		key = append(append(key, ' '), a.Base.Root.String()...)
	}
	for _, x := range a.Slices {
		key = append(append(key, ' '), x.CID...)
	}
	return string(key)
}

// Key implements Action.
func (a Attest) Key() string { return fmt.Sprintf("attest %d %s", a.Next.Round, a.Next.Root) }

// Key implements Action.
func (a Refute) Key() string { return fmt.Sprintf("refute %d %s", a.Wrong.Round, a.Wrong.Root) }

func key(verb string, w work.UnitID) string {
	b := append(make([]byte, 0, 32), verb...)
	for _, x := range []struct {
		mark byte
		n    uint32
	}{{' ', w.Round}, {'/', w.Unit}, {'.', w.Attempt}} {
		b = strconv.AppendUint(append(b, x.mark), uint64(x.n), 10)
	}
	return string(b)
}

func (p Part) key(verb string) string {
	return fmt.Sprintf("%s %d@%d.%d", verb, p.Round, p.Closed, p.Slice)
}

// Updates lists the CIDs of the units' updates in unit order.
func Updates(units work.Units) []string {
	out := make([]string, len(units))
	for i, u := range units {
		out[i] = u.Commit.UpdateCID
	}
	return out
}

// Work names a unit by its index among those of an Advance.
func (a Advance) Work(i int) work.UnitID {
	round := a.Base.Round
	if n := len(a.Rounds); n > 0 {
		round = a.Rounds[i*n/len(a.Units)]
	}
	return a.Units[i].ID(round)
}

// Disputed is the unit that a dispute is about.
func Disputed(g dispute.Dispute) work.UnitID {
	return work.UnitID{Round: g.Config.Round, Unit: g.Config.Unit, Attempt: g.Config.Attempt}
}

// Moves is the next move in a dispute, if it is being played.
func Moves(s run.State, g dispute.Dispute) []Action {
	d, ok := s.Playing(Disputed(g), g.Config.Challenger)
	if !ok {
		return nil
	}
	return []Action{Move{Game: g, Base: d.Base, Commit: d.Commit}}
}

// Accusing returns the moves of a member in the disputes that it began, where it is the member's turn.
func Accusing(b Block, member string) (actions []Action) {
	for _, g := range b.Disputes {
		if g.Config.Challenger == member && g.Turn == dispute.Challenger {
			actions = append(actions, Moves(b.Run, g)...)
		}
	}
	return actions
}

// Pending is the set of actions under way, so that a role asks for each only once. The zero value is empty.
type Pending struct {
	under map[string]Action
	until map[string]int64
}

// retryAfter is how many blocks a failed action rests before it is asked for again.
const retryAfter = 3

// Want returns the actions that are not under way and do not rest after a failure, and marks them as under way.
func (p *Pending) Want(height int64, actions ...Action) []Action {
	if p.under == nil {
		p.under, p.until = map[string]Action{}, map[string]int64{}
	}
	maps.DeleteFunc(p.until, func(_ string, until int64) bool { return until <= height })
	var out []Action
	for _, a := range actions {
		k := a.Key()
		if _, stops := a.(Stop); stops { // it is not answered
			out = append(out, a)
			continue
		}
		if p.under[k] != nil || p.until[k] > height {
			continue
		}
		p.under[k] = a
		out = append(out, a)
	}
	return out
}

// Rests reports whether an action failed so lately that it is not asked for.
func (p *Pending) Rests(height int64, a Action) bool { return p.until[a.Key()] > height }

// Done forgets an action that ended.
func (p *Pending) Done(a Action) { delete(p.under, a.Key()) }

// Settle forgets an action that is in a block after the latest known one, which is at this height. The action is not
// asked for again before a newer block, which shows its effect.
func (p *Pending) Settle(a Action, height int64) {
	p.Done(a)
	p.hold(a, height+1)
}

func (p *Pending) hold(a Action, until int64) {
	if p.until == nil { // the action was not asked for here
		p.under, p.until = map[string]Action{}, map[string]int64{}
	}
	p.until[a.Key()] = until
}

// Stop returns orders to stop the executions of units that are no longer needed after a block: another attempt
// replaces them, or they are settled. A member on probation executes its task. A worker that is late continues while
// it has no other unit: it may still be the first to commit.
func (p *Pending) Stop(s run.State, id string) (stops []Action) {
	t, inProbation := s.Probation(id)
	task := t.Task.ID()
	for k, a := range p.under {
		w, executes := executed(a)
		if !executes || s.Has(w) || inProbation && w == task {
			continue
		}
		late := len(s.Work(id)) == 0 && len(s.Drawing(id)) == 0 &&
			slices.ContainsFunc(
				s.PreviousAssignments(id, w.Round, w.Unit),
				func(h work.PreviousAssignee) bool { return h.Attempt == w.Attempt },
			)
		if !late {
			stops = append(stops, Stop{Of: k})
		}
	}
	slices.SortFunc(stops, func(a, b Action) int { return strings.Compare(a.Key(), b.Key()) })
	return stops
}

// executed is the unit that an action executes, if it does that.
func executed(a Action) (work.UnitID, bool) {
	switch a := a.(type) {
	case Train:
		return a.Work, true
	case Check:
		return a.Work, true
	case Measure:
		return a.Work, true
	}
	return work.UnitID{}, false
}

// Rest forgets an action that failed at a height and lets it rest.
func (p *Pending) Rest(a Action, height int64) {
	p.Done(a)
	p.hold(a, height+retryAfter)
}
