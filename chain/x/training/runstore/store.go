// Package runstore stores the states of runs in parts, so that the gas of a message depends on what it changes and not
// on the size of the run. The head, the terms, the data of each round, and every member, unit, vote, slice and
// probation task are separate parts. The state of a run of a thousand workers has half a megabyte; a commitment changes
// one unit and one member of it.
//
// Reading all parts would still cost the whole state, so Store also keeps the latest state of a run in memory, with its
// stored head. The head contains a digest of all writes that led to it: if the stored head is the same, the whole
// stored state is the same. The memory affects only speed: parts are read without gas, and written only if their bytes
// differ.
package runstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"cosmossdk.io/collections"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

type (
	pair   = collections.Pair[string, uint32]           // job, number
	triple = collections.Triple[string, uint32, uint32] // job, round, index
)

// Store reads and writes the states of runs.
type Store struct {
	heads   collections.Map[string, []byte]
	terms   collections.Map[string, []byte]
	samples collections.Map[string, []byte]
	rounds  collections.Map[pair, []byte]
	froms   collections.Map[pair, []byte]
	units   collections.Map[triple, []byte]
	members collections.Map[pair, []byte]
	votes   collections.Map[pair, []byte]
	slices  collections.Map[pair, []byte]
	trials  collections.Map[pair, []byte]

	mu     sync.Mutex
	latest map[string]cachedRun
}

// head is the part of a state that every message changes, and the lengths of the lists that are stored separately.
type head struct {
	State   run.State    `cbor:"1,keyasint"` // without the separate parts
	Stamp   canon.Digest `cbor:"2,keyasint"`
	Open    []uint32     `cbor:"3,keyasint,omitempty"` // the open rounds, oldest first
	Void    uint32       `cbor:"4,keyasint,omitempty"` // number of rounds that were rolled back
	Members uint32       `cbor:"5,keyasint"`
	Votes   uint32       `cbor:"6,keyasint,omitempty"`
	Slices  uint32       `cbor:"7,keyasint,omitempty"`
	Trials  uint32       `cbor:"8,keyasint,omitempty"`
	Read    []uint32     `cbor:"9,keyasint,omitempty"` // the final rounds that are read, oldest first
}

// storedRound is a round without its lists.
type storedRound struct {
	Lap   work.RoundState `cbor:"1,keyasint"`
	Units uint32          `cbor:"2,keyasint"`
	From  bool            `cbor:"3,keyasint,omitempty"` // whether its units start from states handed over by earlier units
}

// cachedRun is a state with its stored head.
type cachedRun struct {
	text  []byte       // encoded head
	plain []byte       // encoded head without its stamp
	stamp canon.Digest // of the head
	state run.State    // the whole state; callers must not change it
}

// remembered is the number of runs whose states stay in memory.
const remembered = 64

// New returns the store of runs inside a module's store. It uses the prefixes 0, 8 to 11 and 30 to 34.
func New(b *collections.SchemaBuilder) *Store {
	job, u32 := collections.StringKey, collections.Uint32Key
	two, three := collections.PairKeyCodec(job, u32), collections.TripleKeyCodec(job, u32, u32)
	at := collections.NewPrefix[int]
	return &Store{
		heads:   collections.NewMap(b, at(0), "runs", job, adapter.Text[head]()),
		members: collections.NewMap(b, at(8), "members", two, adapter.Text[crew.Member]()),
		units:   collections.NewMap(b, at(9), "units", three, adapter.Text[work.Unit]()),
		votes:   collections.NewMap(b, at(10), "votes", two, adapter.Text[progress.Vote]()),
		slices:  collections.NewMap(b, at(11), "slices", two, adapter.Text[progress.Slice]()),
		terms:   collections.NewMap(b, at(30), "terms", job, adapter.Text[terms.Terms]()),
		samples: collections.NewMap(b, at(31), "samples", job, adapter.Text[progress.ProbationTask]()),
		rounds:  collections.NewMap(b, at(32), "laps", two, adapter.Text[storedRound]()),
		froms:   collections.NewMap(b, at(33), "froms", two, adapter.Text[[]work.HandedState]()),
		trials:  collections.NewMap(b, at(34), "trials", two, adapter.Text[progress.Probation]()),
		latest:  map[string]cachedRun{},
	}
}

// Get returns the state of a run, or collections.ErrNotFound.
func (s *Store) Get(ctx context.Context, job string) (run.State, error) {
	known, err := s.get(ctx, job)
	return known.state, err
}

func (s *Store) get(ctx context.Context, job string) (cachedRun, error) {
	text, err := s.heads.Get(ctx, job)
	if err != nil {
		return cachedRun{}, err
	}
	s.mu.Lock()
	known, ok := s.latest[job]
	s.mu.Unlock()
	if ok && bytes.Equal(known.text, text) {
		return known, nil
	}
	if known, err = s.read(ctx, job, text); err == nil && !ok {
		s.remember(ctx, job, known)
	}
	return known, err
}

// Set stores the parts of a state that differ from the stored state.
func (s *Store) Set(ctx context.Context, job string, after run.State) error {
	old, err := s.get(ctx, job)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	w := &writer{ctx: ctx, changed: [][]byte{old.stamp[:]}}
	next := s.parts(w, job, old.state, after)
	if w.err != nil {
		return w.err
	}
	plain := canon.MustMarshal(next)
	if len(w.changed) == 1 && bytes.Equal(old.plain, plain) {
		return nil
	}
	next.Stamp = canon.Sum("starling/training/run/2", append(w.changed, plain)...)
	text := canon.MustMarshal(next)
	s.remember(ctx, job, cachedRun{text, plain, next.Stamp, after})
	return s.heads.Set(ctx, job, text)
}

// remember keeps a state in memory, except that of a simulation, which is not stored.
func (s *Store) remember(ctx context.Context, job string, known cachedRun) {
	if sdk.UnwrapSDKContext(ctx).ExecMode() == sdk.ExecModeSimulate {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.latest[job]; !ok && len(s.latest) >= remembered {
		for other := range s.latest { // any one: it is read again when needed
			delete(s.latest, other)
			break
		}
	}
	s.latest[job] = known
}

// read decodes a head and reads the other parts of its state.
func (s *Store) read(ctx context.Context, job string, text []byte) (cachedRun, error) {
	h, err := decode[head](text, nil)
	if err != nil {
		return cachedRun{}, err
	}
	read := cachedRun{text: text, stamp: h.Stamp, state: h.State}
	h.Stamp = canon.Digest{}
	read.plain = canon.MustMarshal(h)
	state, free := &read.state, sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	at := func(i uint32) pair { return collections.Join(job, i) }
	var wrong [6]error
	state.Terms, wrong[0] = decode[terms.Terms](s.terms.Get(free, job))
	state.LatestFinal, wrong[1] = decode[progress.ProbationTask](s.samples.Get(free, job))
	state.Members, wrong[2] = list[crew.Member](free, s.members, at, h.Members)
	state.Votes, wrong[3] = list[progress.Vote](free, s.votes, at, h.Votes)
	state.Slices, wrong[4] = list[progress.Slice](free, s.slices, at, h.Slices)
	state.Probations, wrong[5] = list[progress.Probation](free, s.trials, at, h.Trials)
	if err := errors.Join(wrong[:]...); err != nil {
		return read, err
	}
	for _, round := range h.Read {
		l, err := s.round(free, job, round)
		if err != nil {
			return read, err
		}
		state.Read = append(state.Read, l)
	}
	for _, round := range h.Open {
		l, err := s.round(free, job, round)
		if err != nil {
			return read, err
		}
		state.Open = append(state.Open, l)
	}
	for k := range h.Void {
		l, err := s.round(free, job, rolled+k)
		if err != nil {
			return read, err
		}
		state.RolledBack = append(state.RolledBack, l)
	}
	state.RoundState, err = s.round(free, job, state.Round)
	return read, err
}

// round reads a round.
func (s *Store) round(ctx context.Context, job string, key uint32) (l work.RoundState, err error) {
	stored, err := decode[storedRound](s.rounds.Get(ctx, collections.Join(job, key)))
	if l = stored.Lap; err != nil {
		return l, fmt.Errorf("training: round %d of %s: %w", key, job, err)
	}
	if stored.From {
		if l.From, err = decode[[]work.HandedState](s.froms.Get(ctx, collections.Join(job, key))); err != nil {
			return l, err
		}
	}
	l.Units, err = list[*work.Unit](ctx, s.units, within(job, key), stored.Units)
	return l, err
}

func decode[T any](text []byte, err error) (v T, _ error) {
	if err == nil {
		err = canon.Unmarshal(text, &v)
	}
	return v, err
}

func list[T, K any](
	ctx context.Context, m collections.Map[K, []byte], key func(uint32) K, n uint32,
) (all []T, err error) {
	for i := range n {
		v, err := decode[T](m.Get(ctx, key(i)))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
