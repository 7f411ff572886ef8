package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/handover"
)

// ErrNeighbour is wrapped by errors about a neighbour that does not do what it should: it sends a frame twice with
// other values, or one that it has not signed.
var ErrNeighbour = errors.New("pipeline: a neighbour breaks the rules")

// maxWords is the most words of a receiver that wait: one is due in a step, and one comes again when it restarts. Where
// the first stage is late by some steps, words of as many later and earlier steps may wait besides.
const maxWords = 16

// Holder is the party that holds a stage of a replica.
type Holder struct {
	Account string
	Verify  func(statement, signature []byte) bool
}

// Replica is a model in stages, each of which is held by one party in a round.
type Replica struct {
	Job     canon.Digest
	Round   uint32
	Number  uint32 // among the replicas of the round
	Plan    *stages.Plan
	Orders  [][]order.Task // of the tasks of each stage
	Holders []Holder       // of each stage
}

// Link is the link from one stage to another.
func (r *Replica) Link(from, to int) handover.Link {
	return handover.Link{Job: r.Job, Round: r.Round, Replica: r.Number, From: uint32(from), To: uint32(to),
		Sender: r.Holders[from].Account, Receiver: r.Holders[to].Account}
}

// Transport moves messages between the stages of a replica. Messages of one stage to another keep their order.
type Transport interface {
	Send(to int, m Message) error
	// Receive returns the next message of a stage.
	Receive(from int) (Message, error)
}

// Exchange is all frames of a link in a step, as one side has signed them, and as the other has: what is kept for
// verifiers, and shown where two parties differ.
type Exchange struct {
	Step   uint32
	From   int
	To     int
	Before handover.Head // of the frames of the steps before
	Frames []Sealed      // in the order in which they were sent
	Sent   handover.Voucher
	Taken  handover.Voucher
}

// Sealed is the roots of the values of a frame.
type Sealed struct {
	Task  order.Task
	Roots []canon.Digest
}

// line is a pass.Wire that signs what it sends, checks what it receives, and keeps what both have signed. A link is in
// a step of its own: stages that do not wait for each other between steps exchange frames of several steps.
type line struct {
	*Replica
	stage   int
	sign    func(statement []byte) []byte
	moves   Transport
	keep    func(from int, f pass.Frame) error
	links   map[[2]int]*Exchange  // under way, by sender and receiver
	full    map[[2]int][]Exchange // all of whose frames were exchanged, up to the step that ended last
	frames  map[[2]int]int        // of a link in a step
	waiting map[awaited]*pass.Frame
	words   map[int][]handover.Voucher        // of receivers, that came between frames
	roots   map[uint32]map[int32]canon.Digest // of all values exchanged in steps that have not ended
}

// awaited names a frame that came before it was asked for.
type awaited struct {
	step uint32
	order.Place
}

func newLine(r *Replica, stage int, sign func([]byte) []byte, t Transport,
	keep func(from int, f pass.Frame) error) *line {
	l := &line{Replica: r, stage: stage, sign: sign, moves: t, keep: keep, links: map[[2]int]*Exchange{},
		full: map[[2]int][]Exchange{}, frames: map[[2]int]int{}, waiting: map[awaited]*pass.Frame{},
		words: map[int][]handover.Voucher{}, roots: map[uint32]map[int32]canon.Digest{}}
	seen := map[string]bool{}
	for _, t := range r.Plan.Transfers {
		key := [2]int{t.From, t.To}
		if name := fmt.Sprint(key, t.After); !seen[name] {
			seen[name] = true
			l.frames[key]++
		}
		if t.From == stage || t.To == stage {
			l.links[key] = &Exchange{From: t.From, To: t.To}
		}
	}
	return l
}

// next is the exchange of the step after one, of which no frame was exchanged yet. Words are those of the step before.
func (x *Exchange) next() Exchange {
	return Exchange{Step: x.Step + 1, From: x.From, To: x.To, Before: x.Head(), Sent: x.Sent, Taken: x.Taken}
}

// turn begins the next step of a link, if all frames of a step were exchanged.
func (l *line) turn(x *Exchange) {
	key := [2]int{x.From, x.To}
	if len(x.Frames) == l.frames[key] {
		l.full[key] = append(l.full[key], *x)
		*x = x.next()
	}
}

// Head binds the frames up to the last one.
func (x *Exchange) Head() handover.Head {
	h := x.Before
	for _, f := range x.Frames {
		h = h.After(x.Step, uint8(f.Task.Phase), uint32(f.Task.Number), f.Roots)
	}
	return h
}

// add adds a frame to a link.
func (l *line) add(x *Exchange, f pass.Frame) handover.Head {
	roots := train.Roots(f.Values)
	if l.roots[f.Step] == nil {
		l.roots[f.Step] = map[int32]canon.Digest{}
	}
	for i, t := range l.Plan.Frame(x.From, x.To, f.Task) {
		l.roots[f.Step][t.Value] = roots[i]
	}
	x.Frames = append(x.Frames, Sealed{f.Task, roots})
	return x.Head()
}

// Send implements pass.Wire.
func (l *line) Send(to int, f pass.Frame) error {
	x := l.links[[2]int{l.stage, to}]
	h := l.add(x, f)
	x.Sent = l.word(l.stage, to, h, handover.Sender)
	l.turn(x)
	return l.moves.Send(to, Message{Frame: &f, Voucher: x.Sent})
}

// word signs a head.
func (l *line) word(from, to int, h handover.Head, by handover.Side) handover.Voucher {
	return handover.Voucher{Head: h, By: by, Signature: l.sign(handover.Statement(l.Link(from, to), h, by))}
}

// Receive implements pass.Wire.
func (l *line) Receive(from int, step uint32, t order.Task) (pass.Frame, error) {
	at := awaited{step, order.Place{Stage: from, Task: t}}
	for l.waiting[at] == nil {
		if err := l.next(from, step); err != nil {
			return pass.Frame{}, err
		}
	}
	f := l.waiting[at]
	delete(l.waiting, at)
	return *f, nil
}

// next takes in the next message of a stage, while something of a step is waited for.
func (l *line) next(from int, step uint32) error {
	m, err := l.moves.Receive(from)
	if err != nil {
		return err
	}
	if m.Frame == nil {
		if most := maxWords + 2*l.Plan.Late(); len(l.words[from]) == most {
			return fmt.Errorf("%w: stage %d sends %d words before they are due", ErrNeighbour, from, most+1)
		}
		l.words[from] = append(l.words[from], m.Voucher)
		return nil
	}
	x := l.links[[2]int{from, l.stage}]
	if x == nil {
		return fmt.Errorf("%w: stage %d has no link to stage %d", ErrNeighbour, from, l.stage)
	}
	if m.Frame.Step < x.Step { // of a holder that has begun a step again, as all that follows
		return nil
	}
	if err := pass.CheckFrame(l.Plan, from, l.stage, x.Step, m.Frame.Task, *m.Frame); err != nil {
		return err
	}
	if ahead := step + 2*uint32(l.Plan.Late()) + 1; m.Frame.Step > ahead {
		return fmt.Errorf("%w: stage %d sends values of step %d in step %d", ErrNeighbour, from, m.Frame.Step, step)
	}
	return l.take(x, m)
}

// take takes in a frame of the step that its link is in.
func (l *line) take(x *Exchange, m Message) error {
	for _, v := range m.Frame.Values {
		v.Canonicalize()
	}
	if i := slices.IndexFunc(x.Frames, func(s Sealed) bool { return s.Task == m.Frame.Task }); i >= 0 {
		if !slices.Equal(x.Frames[i].Roots, train.Roots(m.Frame.Values)) {
			return fmt.Errorf("%w: stage %d sends other values of %v of step %d", ErrNeighbour, x.From, m.Frame.Task, x.Step)
		}
		return nil
	}
	h := l.add(x, *m.Frame)
	if err := l.verify(x.From, l.stage, h, m.Voucher, handover.Sender); err != nil {
		return err
	}
	x.Sent = m.Voucher
	if l.keep != nil {
		if err := l.keep(x.From, *m.Frame); err != nil {
			return err
		}
	}
	l.waiting[awaited{x.Step, order.Place{Stage: x.From, Task: m.Frame.Task}}] = m.Frame
	if len(x.Frames) < l.frames[[2]int{x.From, l.stage}] {
		return nil
	}
	x.Taken = l.word(x.From, l.stage, h, handover.Receiver)
	l.turn(x)
	return l.moves.Send(x.From, Message{Voucher: x.Taken})
}

// verify checks the word of a neighbour.
func (l *line) verify(from, to int, h handover.Head, v handover.Voucher, by handover.Side) error {
	of := from
	if by == handover.Receiver {
		of = to
	}
	if v.By != by || v.Head != h || !l.Holders[of].Verify(handover.Statement(l.Link(from, to), h, by), v.Signature) {
		return fmt.Errorf("%w: stage %d has not signed what stage %d has sent to stage %d", ErrNeighbour, of, from, to)
	}
	return nil
}

// taken waits for the word of a receiver about the frames of a step. A word about a later step is one about this, too:
// it is verified with that step.
func (l *line) taken(x *Exchange) error {
	for {
		words := l.words[x.To]
		for len(words) > 0 && words[0].Head.Frames <= x.Before.Frames { // of a step that the receiver began again
			words = words[1:]
		}
		l.words[x.To] = words
		if len(words) > 0 {
			break
		}
		if err := l.next(x.To, x.Step); err != nil {
			return err
		}
	}
	word, now := l.words[x.To][0], l.links[[2]int{x.From, x.To}]
	if n := word.Head.Frames; n > x.Head().Frames && n <= now.Before.Frames {
		return nil
	}
	x.Taken, now.Taken, l.words[x.To] = word, word, l.words[x.To][1:]
	return l.verify(l.stage, x.To, x.Head(), x.Taken, handover.Receiver)
}

// end waits until the receivers of all frames of a step have signed them, and returns what was exchanged. Steps end in
// order.
func (l *line) end() ([]Exchange, error) {
	var all []Exchange
	for s := range l.Plan.Stages {
		for _, key := range [][2]int{{l.stage, s}, {s, l.stage}} {
			if l.links[key] == nil {
				continue
			}
			x := l.full[key][0]
			l.full[key] = l.full[key][1:]
			if key[0] == l.stage {
				if err := l.taken(&x); err != nil {
					return nil, err
				}
			}
			all = append(all, x)
		}
	}
	return all, nil
}
