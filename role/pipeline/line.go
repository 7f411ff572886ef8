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

// maxWords is the most words of a receiver that wait: one is due in a step, and one comes again when it restarts.
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

// line is a pass.Wire that signs what it sends, checks what it receives, and keeps what both have signed.
type line struct {
	*Replica
	stage   int
	sign    func(statement []byte) []byte
	moves   Transport
	keep    func(from int, f pass.Frame) error
	links   map[[2]int]*Exchange        // of the step under way, by sender and receiver
	frames  map[[2]int]int              // of a link in a step
	waiting map[order.Place]*pass.Frame // frames that came before they were asked for
	words   map[int][]handover.Voucher  // of receivers, that came between frames
	roots   map[int32]canon.Digest      // of all values exchanged in the step
}

func newLine(r *Replica, stage int, sign func([]byte) []byte, t Transport,
	keep func(from int, f pass.Frame) error) *line {
	l := &line{Replica: r, stage: stage, sign: sign, moves: t, keep: keep, links: map[[2]int]*Exchange{},
		frames: map[[2]int]int{}, waiting: map[order.Place]*pass.Frame{}, words: map[int][]handover.Voucher{}}
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

// begin prepares a step.
func (l *line) begin(step uint32) {
	l.roots = map[int32]canon.Digest{}
	for _, x := range l.links {
		*x = Exchange{Step: step, From: x.From, To: x.To, Before: x.Head(), Sent: x.Sent, Taken: x.Taken}
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
	for i, t := range l.Plan.Frame(x.From, x.To, f.Task) {
		l.roots[t.Value] = roots[i]
	}
	x.Frames = append(x.Frames, Sealed{f.Task, roots})
	return x.Head()
}

// Send implements pass.Wire.
func (l *line) Send(to int, f pass.Frame) error {
	x := l.links[[2]int{l.stage, to}]
	h := l.add(x, f)
	x.Sent = l.word(l.stage, to, h, handover.Sender)
	return l.moves.Send(to, Message{Frame: &f, Voucher: x.Sent})
}

// word signs a head.
func (l *line) word(from, to int, h handover.Head, by handover.Side) handover.Voucher {
	return handover.Voucher{Head: h, By: by, Signature: l.sign(handover.Statement(l.Link(from, to), h, by))}
}

// Receive implements pass.Wire.
func (l *line) Receive(from int, step uint32, t order.Task) (pass.Frame, error) {
	at := order.Place{Stage: from, Task: t}
	for l.waiting[at] == nil {
		if err := l.next(from, step); err != nil {
			return pass.Frame{}, err
		}
	}
	f := l.waiting[at]
	delete(l.waiting, at)
	return *f, nil
}

// next takes in the next message of a stage.
func (l *line) next(from int, step uint32) error {
	m, err := l.moves.Receive(from)
	if err != nil {
		return err
	}
	if m.Frame == nil {
		if len(l.words[from]) == maxWords {
			return fmt.Errorf("%w: stage %d sends %d words before they are due", ErrNeighbour, from, maxWords+1)
		}
		l.words[from] = append(l.words[from], m.Voucher)
		return nil
	}
	if m.Frame.Step < step { // of a holder that has begun a step again, as all that follows
		return nil
	}
	if err := pass.CheckFrame(l.Plan, from, l.stage, step, m.Frame.Task, *m.Frame); err != nil {
		return err
	}
	for _, v := range m.Frame.Values {
		v.Canonicalize()
	}
	x := l.links[[2]int{from, l.stage}]
	if i := slices.IndexFunc(x.Frames, func(s Sealed) bool { return s.Task == m.Frame.Task }); i >= 0 {
		if !slices.Equal(x.Frames[i].Roots, train.Roots(m.Frame.Values)) {
			return fmt.Errorf("%w: stage %d sends other values of %v of step %d", ErrNeighbour, from, m.Frame.Task, step)
		}
		return nil
	}
	h := l.add(x, *m.Frame)
	if err := l.verify(from, l.stage, h, m.Voucher, handover.Sender); err != nil {
		return err
	}
	x.Sent = m.Voucher
	if l.keep != nil {
		if err := l.keep(from, *m.Frame); err != nil {
			return err
		}
	}
	l.waiting[order.Place{Stage: from, Task: m.Frame.Task}] = m.Frame
	if len(x.Frames) < l.frames[[2]int{from, l.stage}] {
		return nil
	}
	x.Taken = l.word(from, l.stage, h, handover.Receiver)
	return l.moves.Send(from, Message{Voucher: x.Taken})
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

// taken waits for the word of a receiver about the frames of a step.
func (l *line) taken(x *Exchange, step uint32) error {
	for {
		words := l.words[x.To]
		for len(words) > 0 && words[0].Head.Frames <= x.Before.Frames { // of a step that the receiver began again
			words = words[1:]
		}
		l.words[x.To] = words
		if len(words) > 0 {
			break
		}
		if err := l.next(x.To, step); err != nil {
			return err
		}
	}
	x.Taken, l.words[x.To] = l.words[x.To][0], l.words[x.To][1:]
	return l.verify(l.stage, x.To, x.Head(), x.Taken, handover.Receiver)
}

// end waits until the receivers of all frames of a step have signed them, and returns what was exchanged.
func (l *line) end(step uint32) ([]Exchange, error) {
	var all []Exchange
	for s := range l.Plan.Stages {
		for _, key := range [][2]int{{l.stage, s}, {s, l.stage}} {
			x := l.links[key]
			if x == nil {
				continue
			}
			if key[0] == l.stage {
				if err := l.taken(x, step); err != nil {
					return nil, err
				}
			}
			all = append(all, *x)
		}
	}
	return all, nil
}
