// Package hold is how the parties of a process hold what they compute with: once, where several have the same (Shared),
// outside of memory, where it is seldom read (Aside), and as long as it is used (Recent). It never decides what a party
// has: engines get and verify everything for themselves.
package hold

import (
	"maps"
	"sync"
	"weak"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Shared holds once what several parties of one process have in memory alike, by its digest: checkpoints, states that
// units carry, frozen tensors and the corpus. Every party gets them and verifies them for itself, and then uses the
// first of equal ones, so that sharing changes no message and no result. Frozen tensors, which may be most of a model,
// one party gets and verifies for all. Shared drops checkpoints and states that no party uses any more. A nil Shared
// shares nothing.
type Shared struct {
	turns     chan struct{} // of units that are computed; nil: as many as there are engines
	combining sync.Mutex    // held while updates are combined, if units take turns

	mu          sync.Mutex
	checkpoints map[canon.Digest]weak.Pointer[train.Checkpoint]
	states      map[canon.Digest]weak.Pointer[Tensors]
	frozen      map[canon.Digest]frozen
	corpora     map[canon.Digest]*data.Corpus

	loading sync.Mutex // held while a party gets frozen tensors
	laying  sync.Mutex // held while a checkpoint is laid outside of memory
}

// frozen are tensors that a job reads and does not train.
type frozen struct {
	tensors []*tensor.Tensor
	roots   []canon.Digest
}

// NewShared returns what the parties of a process share. Of their engines no more than so many compute a unit at a
// time, and one combines updates, so that memory is not taken for work that waits for a processor; 0: all do.
func NewShared(units int) *Shared {
	s := &Shared{checkpoints: map[canon.Digest]weak.Pointer[train.Checkpoint]{},
		states: map[canon.Digest]weak.Pointer[Tensors]{},
		frozen: map[canon.Digest]frozen{}, corpora: map[canon.Digest]*data.Corpus{}}
	if units > 0 {
		s.turns = make(chan struct{}, units)
	}
	return s
}

// Checkpoint is the one of this root: if no other is known it is c, whose tensors are laid outside of memory.
func (s *Shared) Checkpoint(root canon.Digest, c *train.Checkpoint, to Aside) *train.Checkpoint {
	if s == nil {
		return Lay(to, c)
	}
	s.laying.Lock()
	defer s.laying.Unlock()
	s.mu.Lock()
	known := s.checkpoints[root].Value()
	s.mu.Unlock()
	if known != nil {
		return known
	}
	return first(s, s.checkpoints, root, Lay(to, c))
}

// State is the carried state with this root, whose tensors are put aside if no party has them yet.
func (s *Shared) State(root canon.Digest, tensors []*tensor.Tensor, to Aside) *Tensors {
	if s == nil {
		return Put(to, tensors)
	}
	s.mu.Lock()
	known := s.states[root].Value()
	s.mu.Unlock()
	if known != nil {
		return known
	}
	return first(s, s.states, root, Put(to, tensors))
}

// Task lets a task have the corpus and the frozen tensors that others of its digests have.
func (s *Shared) Task(t *train.Task) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole, ok := t.Corpus.(*data.Corpus); ok { // any other is of one party's store
		if c, ok := s.corpora[t.Spec.Data]; ok {
			whole = c
		}
		t.Corpus, s.corpora[t.Spec.Data] = whole, whole
	}
	if f, ok := s.frozen[t.Spec.Frozen]; ok {
		t.Frozen, t.FrozenRoots = f.tensors, f.roots
	}
	s.frozen[t.Spec.Frozen] = frozen{t.Frozen, t.FrozenRoots}
}

// Frozen lets a task have the frozen tensors that a party of this process has verified to be those of its
// specification, or else those that load gives it: one party at a time loads.
func (s *Shared) Frozen(t *train.Task, load func() error) error {
	if s == nil {
		return load()
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	s.mu.Lock()
	f, ok := s.frozen[t.Spec.Frozen]
	s.mu.Unlock()
	if ok {
		t.Frozen, t.FrozenRoots = f.tensors, f.roots
		return nil
	}
	if err := load(); err != nil {
		return err
	}
	s.Task(t)
	return nil
}

// first returns the value of a digest that is known already, or makes x known.
func first[T any](s *Shared, known map[canon.Digest]weak.Pointer[T], of canon.Digest, x *T) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := known[of].Value(); p != nil {
		return p
	}
	maps.DeleteFunc(known, func(_ canon.Digest, w weak.Pointer[T]) bool { return w.Value() == nil })
	known[of] = weak.Make(x)
	return x
}

// Turn lets one unit of an engine be computed at a time, and as many of all as share its turns. It implements
// sync.Locker.
type Turn struct {
	Own    sync.Mutex // of the engine alone
	Shared *Shared    // may be nil
}

// Lock implements sync.Locker.
func (t *Turn) Lock() {
	t.Own.Lock()
	if t.Shared != nil && t.Shared.turns != nil {
		t.Shared.turns <- struct{}{}
	}
}

// Unlock implements sync.Locker.
func (t *Turn) Unlock() {
	if t.Shared != nil && t.Shared.turns != nil {
		<-t.Shared.turns
	}
	t.Own.Unlock()
}

// Combine waits until updates may be combined. The returned function says that it is done.
func (t *Turn) Combine() (done func()) {
	if t.Shared == nil || t.Shared.turns == nil {
		return func() {}
	}
	t.Shared.combining.Lock()
	return t.Shared.combining.Unlock
}
