// Package layered answers requests with a model whose layers live on several machines: a Holder has the layers of one
// stage, and continues sequences for fronts; a Line is the stages as a front sees them, with replicas of each. All
// values pass the front, which keeps the inputs of each stage: a stage whose holder is gone is continued by a replica,
// and drawn texts are computed again by another one.
//
// The folders are package part's, the bytes package wire's. It knows no chain, and opens no stream.
package layered

import (
	"errors"
	"fmt"
	"sync"

	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/node/layered/part"
	"github.com/starling-network/starling/node/layered/wire"
)

// Holder is the provider of a stage. Its methods may be called concurrently.
type Holder struct {
	dir     string
	threads int
	memory  int64 // bytes that the keys and values of each front may take

	mu   sync.Mutex
	held *held // the stage that new dialogues get
}

// held is a stage of one epoch.
type held struct {
	manifest part.Manifest
	hello    wire.Hello

	mu      sync.Mutex
	section *section.Section
	began   uint64            // sequences of all dialogues that have begun; the number of the last one
	fronts  map[uint64]string // names of the fronts, by the number of a sequence
}

// Open reads the stage in a folder. Keys and values take at most a number of bytes for each front.
func Open(dir string, threads int, memory int64) (*Holder, error) {
	h := &Holder{dir: dir, threads: threads, memory: memory}
	var err error
	h.held, err = h.read()
	return h, err
}

func (h *Holder) read() (*held, error) {
	p, err := part.Read(h.dir)
	if err != nil {
		return nil, err
	}
	s, err := section.New(p.Layout, p.Stage, p.Tensors, h.threads)
	if err != nil {
		return nil, err
	}
	return &held{section: s, manifest: p.Manifest, fronts: map[uint64]string{},
		hello: wire.Hello{Weights: p.Weights, Stages: p.Stages, Stage: p.Stage}}, nil
}

// Manifest says which stage it is.
func (h *Holder) Manifest() part.Manifest { return h.current().manifest }

// Longest is the number of bytes of the longest question.
func (h *Holder) Longest() int { return wire.Longest(h.current().section.Config.Width) }

func (h *Holder) current() *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// of returns the stage of the model that a question names. If the folder has got the stage of another epoch, it is read
// from there; dialogues that have begun continue with the stage of their epoch.
func (h *Holder) of(q wire.Question) (*held, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held.hello.Weights == q.Model {
		return h.held, nil
	}
	if m, _, err := part.ReadManifest(h.dir); err != nil || m.Weights != q.Model {
		return nil, fmt.Errorf("this is a stage of model %s", h.held.hello.Weights.Short())
	}
	next, err := h.read()
	if err != nil {
		return nil, errors.New("the stage cannot be read")
	}
	if next.section.Config.Width != h.held.section.Config.Width {
		return nil, errors.New("the folder has a model of another size: the holder has to start again")
	}
	h.held = next
	return next, nil
}

// Dialogue begins a dialogue with a front of a name.
func (h *Holder) Dialogue(front string) *Dialogue {
	return &Dialogue{holder: h, front: front, ids: map[uint64]uint64{}}
}

// Dialogue is the holder's side of a dialogue with a front: a dialogue.Answerer. Its sequences end with it.
type Dialogue struct {
	holder *Holder
	front  string
	held   *held
	ids    map[uint64]uint64 // numbers of sequences in the section, by the numbers that the front gave them
}

// Answer answers a question, whose author is not trusted.
func (d *Dialogue) Answer(question []byte) []byte {
	a, err := d.answer(question)
	if err != nil {
		return wire.Refuse(err.Error())
	}
	return a.Encode()
}

func (d *Dialogue) answer(question []byte) (a wire.Answer, err error) {
	now := d.held
	if now == nil {
		now = d.holder.current()
	}
	q, err := wire.ReadQuestion(question, now.section.Layout)
	if err != nil {
		return a, err
	}
	a.Kind = q.Kind
	if q.Kind == wire.KindHello {
		d.End() // of sequences of another epoch
		if d.held, err = d.holder.of(q); err == nil {
			a.Hello = d.held.hello
		}
		return a, err
	}
	if d.held == nil {
		return a, errors.New("the first question asks which stage this is")
	}
	d.held.mu.Lock()
	defer d.held.mu.Unlock()
	if q.Kind == wire.KindEnd {
		d.forget(q.ID)
		return a, nil
	}
	for _, p := range q.Passes {
		hidden, err := d.run(p)
		if err != nil {
			return a, err
		}
		if q.Kind == wire.KindPass {
			a.Hidden = hidden
		} else {
			a.Digests = append(a.Digests, wire.Digest(hidden))
		}
	}
	return a, nil
}

// forget ends a sequence; it is no error if there is none. It needs the lock.
func (d *Dialogue) forget(id uint64) {
	d.held.section.End(d.ids[id])
	delete(d.held.fronts, d.ids[id])
	delete(d.ids, id)
}

// run continues sequences. Those that it cannot begin are forgotten. It needs the lock.
func (d *Dialogue) run(p section.Pass) ([]float32, error) {
	s, stage := d.held.section, d.held.hello.Stage
	var begun []uint64
	hidden, err := func() ([]float32, error) {
		for i, r := range p.Rows {
			switch _, ok := d.ids[r.ID]; {
			case r.Start > 0 && !ok:
				return nil, fmt.Errorf("sequence %d has not begun here", r.ID)
			case r.Start == 0:
				d.forget(r.ID)
				if d.memory()+begins(p.Rows[:i+1], s, stage) > d.holder.memory {
					return nil, errors.New("there is no room for the keys and values of another text")
				}
				d.held.began++
				d.ids[r.ID], d.held.fronts[d.held.began] = d.held.began, d.front
				begun = append(begun, r.ID)
			}
			p.Rows[i].ID = d.ids[r.ID]
		}
		return s.Run(p)
	}()
	if err != nil {
		for _, id := range begun {
			d.forget(id)
		}
		return nil, err
	}
	if stage < d.held.hello.Stages {
		return hidden, nil
	}
	return section.Last(p, hidden), nil
}

// memory is the number of bytes that the sequences of the front may take, in all its dialogues.
func (d *Dialogue) memory() int64 {
	return d.held.section.Memory(func(id uint64) bool { return d.held.fronts[id] == d.front })
}

// begins is the memory of the sequences that begin.
func begins(rows []section.Row, s *section.Section, stage int) (n int64) {
	for _, r := range rows {
		if r.Start == 0 {
			n += s.Bytes(stage, r.Limit)
		}
	}
	return n
}

// End ends the sequences of the dialogue.
func (d *Dialogue) End() {
	if d.held == nil {
		return
	}
	d.held.mu.Lock()
	defer d.held.mu.Unlock()
	for id := range d.ids {
		d.forget(id)
	}
}
