// Package dispute narrows the disagreement of two parties that computed different results for one work unit to one
// question that any account can answer. It is a pure state machine in which the asserter (the worker, bound by its
// commitment) and the challenger (a verifier) descend, up to 64 ways a move, to the first place where they differ.
//
// The descent goes over the states after the inner steps of a segment, then over the operators of one step, then over
// the partial states of one operator's output, part by part: a part is so small that any machine can compute it from a
// megabyte. The challenger's pick agrees to everything to the left of it; digests that the asserter shows are bound to
// those that it showed before, so it cannot change its claim. Every move has a deadline, and silence loses. The shape
// is that of refereed delegation (Arun et al. 2025, "Verde", section 3) over the Merkle trees of package canon.
//
// The package moves digests. It does not know tensors: the last question is put to a Referee, and each party answers
// from its Oracle. It does not slash or pay; that is run and reward.
package dispute

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
)

// The refusals. After each of them the dispute is unchanged, and the party whose turn it is may try again until its
// deadline.
var (
	ErrConfig   = errors.New("dispute: this unit cannot be disputed")
	ErrOver     = errors.New("dispute: it has its verdict")
	ErrNotYours = errors.New("dispute: it is not the sender's turn")
	ErrLate     = errors.New("dispute: the deadline of this move has passed")
	ErrMove     = errors.New("dispute: this move cannot be made now")
	ErrEncoding = errors.New("dispute: the bytes are not a move")
)

// ErrWork is returned for work that cannot be disputed: it is not shown, or a question about it could not be answered.
var ErrWork = errors.New("dispute: the work could not be disputed")

// Limits of a game.
const (
	MaxSegments  = 64
	MaxSteps     = 1 << 20 // inner steps of a segment
	MaxOperators = 1 << 20
	MaxParts     = 1 << 40 // of an output or a payload
	MaxLeaf      = 2 << 20 // bytes of a payload for the referee
)

// Config is the subject of a dispute.
type Config struct {
	Job        string       `cbor:"1,keyasint"`
	Round      uint32       `cbor:"2,keyasint"`
	Unit       uint32       `cbor:"3,keyasint"`
	Attempt    uint32       `cbor:"4,keyasint"`
	Asserter   string       `cbor:"5,keyasint"` // account of the worker
	Challenger string       `cbor:"6,keyasint"` // account of the verifier
	Base       canon.Digest `cbor:"7,keyasint"` // root of the checkpoint that the round starts from
	// committed inner state roots: at the start, then after every segment
	Segments []canon.Digest `cbor:"8,keyasint"`
	// committed root over the payloads of the update, one per parameter; zero: it is not finite
	Update     canon.Digest `cbor:"9,keyasint"`
	Steps      []uint32     `cbor:"10,keyasint"` // inner steps of every segment: one fewer than Segments
	Operators  uint32       `cbor:"11,keyasint"` // of the program of one step
	Parameters uint32       `cbor:"12,keyasint"` // tensors of the update
	MoveBlocks int64        `cbor:"13,keyasint"` // blocks that the asserter has for a move
	// root of the carried state that the unit starts from; zero: nothing
	From         canon.Digest `cbor:"14,keyasint,omitzero"`
	Carried      canon.Digest `cbor:"15,keyasint,omitzero"` // committed root of its own carried state; zero: none
	StateTensors uint32       `cbor:"16,keyasint,omitzero"` // tensors of that state; 0: as many as Parameters

	// blocks that the challenger has for a move; 0: as many as the asserter
	ChallengerBlocks int64 `cbor:"17,keyasint,omitzero"`
	// the unit has no update, which could be disputed: it passes on a state alone
	NoUpdate bool `cbor:"18,keyasint,omitzero"`
	// of a unit that is a stage of a model: what it has exchanged with others, by link. Carried is then the root over
	// these, and StateTensors their number.
	Links []canon.Digest `cbor:"19,keyasint,omitempty"`
}

// carriedTensors is the number of tensors of the carried state.
func (c Config) carriedTensors() uint32 {
	if c.StateTensors == 0 {
		return c.Parameters
	}
	return c.StateTensors
}

func (c Config) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	switch {
	case c.Asserter == "" || c.Challenger == "" || c.Asserter == c.Challenger:
		return bad("it needs two parties, not %q and %q", c.Asserter, c.Challenger)
	case len(c.Steps) < 1 || len(c.Steps) > MaxSegments || len(c.Segments) != len(c.Steps)+1:
		return bad("%d state roots for %d segments of at most %d", len(c.Segments), len(c.Steps), MaxSegments)
	case c.Operators < 1 || c.Operators > MaxOperators || c.Parameters < 1 || c.Parameters > MaxOperators:
		return bad("%d operators and %d parameters, wanted 1 to %d", c.Operators, c.Parameters, MaxOperators)
	case c.StateTensors > MaxOperators:
		return bad("%d tensors of a carried state, at most %d", c.StateTensors, MaxOperators)
	case c.MoveBlocks < 1 || c.ChallengerBlocks < 0:
		return bad("%d and %d blocks for a move", c.MoveBlocks, c.ChallengerBlocks)
	}
	for k, n := range c.Steps {
		if n < 1 || n > MaxSteps {
			return bad("segment %d has %d steps, wanted 1 to %d", k+1, n, MaxSteps)
		}
	}
	return nil
}

// span returns the inner steps of the unit before and after segment k, from 1.
func (c Config) span(k uint32) (from, to uint64) {
	for _, n := range c.Steps[:k-1] {
		from += uint64(n)
	}
	return from, from + uint64(c.Steps[k-1])
}

// Party is a side of a dispute.
type Party uint8

// The parties.
const (
	Asserter   Party = 1
	Challenger Party = 2
)

// String names the party in reports.
func (p Party) String() string {
	if p == Asserter {
		return "worker"
	}
	return "verifier"
}

// Stage says which move comes next, and with it who makes it.
type Stage uint8

// The stages are part of the format.
const (
	ShowStates Stage = 1 // asserter: States, between the last agreed state and the disputed one
	PickState  Stage = 2 // challenger: Pick, the first of them that differs; Leaf, if only one part is left
	// asserter: Tree, the top of the trace of one step or of the update; Point, if it says that there is none
	ShowTree  Stage = 3
	PickNode  Stage = 4 // challenger: Pick, the first node that differs; Leaf, if it is made in one part; or at once Bind
	ShowNodes Stage = 5 // asserter: Nodes, those below the picked node
	// challenger: Leaf, about the state at the start of the unit, or the part that the asserter has pointed at
	ShowLeaf Stage = 6
	Over     Stage = 7 // there is a verdict, or none is needed
)

func (s Stage) turn() Party {
	if s == ShowStates || s == ShowTree || s == ShowNodes {
		return Asserter
	}
	return Challenger
}

// Dispute is a dispute between two moves. It has some kilobytes, at most 16, whatever the size of the unit.
type Dispute struct {
	Config   Config `cbor:"1,keyasint"`
	Stage    Stage  `cbor:"2,keyasint"`
	Turn     Party  `cbor:"3,keyasint"`
	Deadline int64  `cbor:"4,keyasint"` // height up to which the next move is taken
	// first committed root that differs; len(Config.Segments): only the update does; after that only the carried state
	Segment uint32 `cbor:"5,keyasint"`

	Steps Interval `cbor:"6,keyasint"` // inner steps of the unit, between states of the model
	Tree  Descent  `cbor:"7,keyasint"` // over the operators of the step picked there, or the parameters of the update
	Parts Interval `cbor:"8,keyasint"` // parts of the output or payload picked there, between states of its making

	Moves     [2]uint32 `cbor:"9,keyasint"`  // made by the asserter and by the challenger; opening counts
	HashBytes uint64    `cbor:"10,keyasint"` // of all digests shown
	Log       []Record  `cbor:"11,keyasint"`
	Verdict   *Verdict  `cbor:"12,keyasint,omitempty"`
	Planted   bool      `cbor:"13,keyasint,omitempty"` // it ended without one, for the fault was planted
	Spent     [2]int64  `cbor:"14,keyasint"`           // blocks that the asserter and the challenger took for their moves
	// blocks in which the clocks of the asserter and the challenger stood still
	Stood [2]int64 `cbor:"15,keyasint,omitzero"`
	Still int64    `cbor:"16,keyasint,omitzero"` // of them since the last move
}

// Verdict is how a dispute ended.
type Verdict struct {
	AsserterLies bool   `cbor:"1,keyasint"`
	Reason       string `cbor:"2,keyasint"`
	Leaf         string `cbor:"3,keyasint"` // Kind of the recomputed claim; empty if the dispute ended before
	LeafBytes    uint64 `cbor:"4,keyasint"`
	Moves        uint32 `cbor:"5,keyasint"` // of both parties
	HashBytes    uint64 `cbor:"6,keyasint"`
	Operator     uint32 `cbor:"7,keyasint"` // that was recomputed; for Leaf "update", the parameter
	Part         uint64 `cbor:"8,keyasint"` // of its output or payload

	// The digests that the referee computed and the asserter claimed. Zero: it cannot be computed, or is not finite.
	Computed canon.Digest `cbor:"9,keyasint,omitzero"`
	Claimed  canon.Digest `cbor:"10,keyasint,omitzero"`
}

// Reasons of a verdict.
const (
	Recomputed = "recomputed" // the referee answered the last question
	BadLeaf    = "bad_leaf"   // the challenger's payload does not let the referee answer
	Silence    = "silence"    // no move before the deadline
)

// Open begins a dispute at a height: the challenger claims that the committed root of this index is the first that
// differs from its own. len(Config.Segments) stands for the update, and the number after it for the carried state.
func Open(c Config, segment uint32, height int64) (Dispute, error) {
	if err := c.check(); err != nil {
		return Dispute{}, err
	}
	last := uint32(len(c.Segments))
	g := Dispute{Config: c, Segment: segment}
	g.Tree.Leaves = c.Operators
	switch {
	case segment == last && !c.NoUpdate || segment == last+1 && !c.Carried.IsZero():
		_, end := c.span(last - 1)
		g.Steps = Interval{From: end, To: end, Prior: c.Segments[last-1]}
		g.Tree.Leaves, g.Stage = c.Parameters, ShowTree
		if segment > last {
			g.Tree.Leaves = c.carriedTensors()
		}
	case segment >= last:
		return Dispute{}, fmt.Errorf("%w: no state root %d, the unit has %d", ErrConfig, segment, last)
	case segment == 0:
		g.Steps.After, g.Stage = c.Segments[0], ShowLeaf
	default:
		from, to := c.span(segment)
		g.Steps = Interval{From: from, To: to, Prior: c.Segments[segment-1], After: c.Segments[segment]}
		g.Stage = g.below()
	}
	return g.moved(height, Challenger, g.Stage, Record{Event: Opened, Index: segment}), nil
}

// below is the stage after an interval of steps is chosen.
func (g Dispute) below() Stage {
	if g.Steps.single() {
		return ShowTree
	}
	return ShowStates
}

// turns bounds the total time of a party for its moves, in multiples of its time for one move. Only few moves need an
// execution: a party that takes its full time for every move only delays the verdict.
const turns = 4

// moved returns the game after a move.
func (g Dispute) moved(height int64, by Party, next Stage, r Record) Dispute {
	if n := len(g.Log); n > 0 {
		g.Spent[by-1] += max(0, height-g.Log[n-1].Height-g.Still)
	}
	g.Still = 0
	g.Moves[by-1]++
	g = g.record(height, by, r)
	g.Stage, g.Turn = next, next.turn()
	g.Deadline = height + g.left(g.Turn)
	return g
}

// each is the number of blocks that a party has for a move.
func (g Dispute) each(p Party) int64 {
	if p == Challenger && g.Config.ChallengerBlocks > 0 {
		return g.Config.ChallengerBlocks
	}
	return g.Config.MoveBlocks
}

// left is the number of blocks that a party has for its next move.
func (g Dispute) left(p Party) int64 {
	blocks := g.each(p)
	return min(blocks, max(1, turns*blocks-g.Spent[p-1]))
}

// Stand returns the dispute after a block in which the clock of the party to move stood still, because the block left
// out its move. The total of such blocks per party is bounded by the total time of its moves; after that its clock
// runs in any case.
func (g Dispute) Stand() Dispute {
	if g.Stage == Over || g.Turn == 0 || g.Stood[g.Turn-1] >= turns*g.each(g.Turn) {
		return g
	}
	g.Stood[g.Turn-1]++
	g.Still++
	g.Deadline++
	return g
}

// Ply is how many moves both parties have made.
func (g Dispute) Ply() uint32 { return g.Moves[0] + g.Moves[1] }

// Mover is the account whose turn it is, empty if the game is over.
func (g Dispute) Mover() string {
	switch g.Turn {
	case Asserter:
		return g.Config.Asserter
	case Challenger:
		return g.Config.Challenger
	}
	return ""
}

// Loser is the account that the verdict is against, empty while there is none.
func (g Dispute) Loser() string {
	switch {
	case g.Verdict == nil:
		return ""
	case g.Verdict.AsserterLies:
		return g.Config.Asserter
	}
	return g.Config.Challenger
}

// Tick ends a dispute whose deadline has passed: the party to move loses. It returns other disputes as they are.
func (g Dispute) Tick(height int64) Dispute {
	if g.Stage == Over || height <= g.Deadline {
		return g
	}
	late := g.Turn
	g = g.record(height, late, Record{Event: Late, To: uint64(g.Deadline)})
	return g.end(Verdict{AsserterLies: late == Asserter, Reason: Silence})
}

// Void ends a dispute without a verdict: its question was settled otherwise, perhaps because the asserter showed that
// it had planted the fault, and neither party loses. It returns a dispute that is over as it is.
func (g Dispute) Void(height int64, planted bool) Dispute {
	if g.Stage == Over {
		return g
	}
	r := Record{Event: Moot}
	if planted {
		r.Event = WasPlanted
	}
	g = g.record(height, g.Turn, r)
	g.Stage, g.Turn, g.Planted = Over, 0, planted
	return g
}

func (g Dispute) end(v Verdict) Dispute {
	v.Moves, v.HashBytes = g.Moves[0]+g.Moves[1], g.HashBytes
	g.Stage, g.Turn, g.Verdict = Over, 0, &v
	return g
}
