package training

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"cosmossdk.io/collections"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/run"
)

// shelf stores the states of runs in parts, so that a message costs what it changes and not what the run holds: the head,
// and every member, unit, vote and slice by itself. A run of a thousand workers is half a megabyte; a commitment changes one
// unit and one member of it.
//
// Reading would still cost the whole, so the latest state of a run is remembered beside the store, with the head that is stored
// of it. The head carries a digest of all writes that made it: where the store has the same one, it has the same state. What is
// remembered changes nothing but speed: parts are read without gas, and written if their bytes differ.
type shelf struct {
	heads   collections.Map[string, []byte]
	members collections.Map[collections.Pair[string, uint32], []byte]
	units   collections.Map[collections.Triple[string, uint32, uint32], []byte] // job, round, index
	votes   collections.Map[collections.Pair[string, uint32], []byte]
	slices  collections.Map[collections.Pair[string, uint32], []byte]

	mu     sync.Mutex
	latest map[string]shelved
}

// head is a state without its lists, which have as many parts as it says.
type head struct {
	State  run.State    `cbor:"1,keyasint"`
	Stamp  canon.Digest `cbor:"2,keyasint"`
	Counts []uint32     `cbor:"3,keyasint"` // units of the open rounds, oldest first, and of the current one; members, votes, slices
}

// shelved is a state, and the head that is stored of it.
type shelved struct {
	text  []byte       // of the head
	plain []byte       // of the head without its stamp
	stamp canon.Digest // of the head
	state run.State    // all of it. Nobody changes a state that it was given
}

// remembered is how many runs are remembered at most.
const remembered = 64

func newShelf(b *collections.SchemaBuilder) *shelf {
	job, u32 := collections.StringKey, collections.Uint32Key
	pair, triple := collections.PairKeyCodec(job, u32), collections.TripleKeyCodec(job, u32, u32)
	return &shelf{
		heads:   collections.NewMap(b, collections.NewPrefix(0), "runs", job, adapter.Text[head]()),
		members: collections.NewMap(b, collections.NewPrefix(8), "members", pair, adapter.Text[run.Member]()),
		units:   collections.NewMap(b, collections.NewPrefix(9), "units", triple, adapter.Text[run.Unit]()),
		votes:   collections.NewMap(b, collections.NewPrefix(10), "votes", pair, adapter.Text[run.Vote]()),
		slices:  collections.NewMap(b, collections.NewPrefix(11), "slices", pair, adapter.Text[run.Slice]()),
		latest:  map[string]shelved{},
	}
}

// get returns the state of a run, or collections.ErrNotFound.
func (s *shelf) get(ctx context.Context, job string) (shelved, error) {
	text, err := s.heads.Get(ctx, job)
	if err != nil {
		return shelved{}, err
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

// read puts the parts into a head.
func (s *shelf) read(ctx context.Context, job string, text []byte) (shelved, error) {
	var h head
	if err := canon.Unmarshal(text, &h); err != nil {
		return shelved{}, err
	}
	free := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	read := shelved{text: text, stamp: h.Stamp, state: h.State}
	h.Stamp = canon.Digest{}
	read.plain = canon.MustMarshal(h)
	state := &read.state
	n := len(state.Open)
	if len(h.Counts) != n+4 {
		return read, fmt.Errorf("training: the head of %s counts %d lists instead of %d", job, len(h.Counts), n+4)
	}
	var err error
	for i, lap := range laps(state) {
		key := func(index uint32) collections.Triple[string, uint32, uint32] {
			return collections.Join3(job, lap.Round, index)
		}
		if lap.Units, err = list[*run.Unit](free, s.units, key, h.Counts[i]); err != nil {
			return read, err
		}
	}
	at := func(i uint32) collections.Pair[string, uint32] { return collections.Join(job, i) }
	if state.Members, err = list[run.Member](free, s.members, at, h.Counts[n+1]); err != nil {
		return read, err
	}
	if state.Votes, err = list[run.Vote](free, s.votes, at, h.Counts[n+2]); err != nil {
		return read, err
	}
	state.Slices, err = list[run.Slice](free, s.slices, at, h.Counts[n+3])
	return read, err
}

// laps are the open rounds of a run, oldest first, and the current one.
func laps(s *run.State) (all []*run.Lap) {
	for i := range s.Open {
		all = append(all, &s.Open[i])
	}
	return append(all, &s.Lap)
}

func list[T, K any](ctx context.Context, m collections.Map[K, []byte], key func(uint32) K, n uint32) (all []T, err error) {
	for i := range n {
		text, err := m.Get(ctx, key(i))
		if err != nil {
			return nil, err
		}
		var v T
		if err := canon.Unmarshal(text, &v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// remember keeps a state, but that of a simulation, which is nobody's and would take the place of one that is.
func (s *shelf) remember(ctx context.Context, job string, known shelved) {
	if sdk.UnwrapSDKContext(ctx).ExecMode() == sdk.ExecModeSimulate {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.latest[job]; !ok && len(s.latest) >= remembered {
		for other := range s.latest { // whichever: it is read again when it is asked for
			delete(s.latest, other)
			break
		}
	}
	s.latest[job] = known
}

// set stores a state: what differs from the one in the store.
func (s *shelf) set(ctx context.Context, job string, after run.State) error {
	old, err := s.get(ctx, job)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	before := old.state
	w := &writer{changed: [][]byte{old.stamp[:]}}
	bases := map[uint32]run.Units{}
	for _, lap := range laps(&before) {
		bases[lap.Round] = lap.Units
	}
	next := head{State: after}
	next.State.Open = append([]run.Lap(nil), after.Open...)
	in := func(round uint32) func(uint32) collections.Triple[string, uint32, uint32] {
		return func(i uint32) collections.Triple[string, uint32, uint32] { return collections.Join3(job, round, i) }
	}
	for _, lap := range laps(&next.State) {
		write(ctx, w, s.units, in(lap.Round), bases[lap.Round], lap.Units)
		delete(bases, lap.Round)
		next.Counts = append(next.Counts, uint32(len(lap.Units)))
		lap.Units = nil
	}
	for _, lap := range laps(&before) {
		if units, gone := bases[lap.Round]; gone {
			write(ctx, w, s.units, in(lap.Round), units, nil)
		}
	}
	at := func(i uint32) collections.Pair[string, uint32] { return collections.Join(job, i) }
	write(ctx, w, s.members, at, before.Members, after.Members)
	write(ctx, w, s.votes, at, before.Votes, after.Votes)
	write(ctx, w, s.slices, at, before.Slices, after.Slices)
	next.Counts = append(next.Counts, uint32(len(after.Members)), uint32(len(after.Votes)), uint32(len(after.Slices)))
	next.State.Members, next.State.Votes, next.State.Slices = nil, nil, nil
	if w.err != nil {
		return w.err
	}
	plain := canon.MustMarshal(next)
	if len(w.changed) == 1 && bytes.Equal(old.plain, plain) {
		return nil
	}
	next.Stamp = canon.Sum("starling/training/run/1", append(w.changed, plain)...)
	text := canon.MustMarshal(next)
	s.remember(ctx, job, shelved{text, plain, next.Stamp, after})
	return s.heads.Set(ctx, job, text)
}

// writer gathers what is written for one state.
type writer struct {
	changed [][]byte
	err     error
}

// write stores the elements of a list that differ from those before, and removes those that are too many.
func write[K, T any](ctx context.Context, w *writer, m collections.Map[K, []byte], key func(uint32) K, before, after []T) {
	for i := range after {
		if w.err != nil {
			return
		}
		if i < len(before) && identical(&before[i], &after[i]) {
			continue
		}
		text := canon.MustMarshal(after[i])
		if i < len(before) && bytes.Equal(canon.MustMarshal(before[i]), text) {
			continue
		}
		w.changed = append(w.changed, text)
		w.err = m.Set(ctx, key(uint32(i)), text)
	}
	for i := len(after); i < len(before) && w.err == nil; i++ {
		w.err = m.Remove(ctx, key(uint32(i)))
	}
}

// identical reports whether two elements are the same memory word for word: copies of one that nobody has changed since, as a
// rule never changes a state that it was given. Others may be equal all the same.
func identical[T any](a, b *T) bool {
	size := unsafe.Sizeof(*a)
	return bytes.Equal(unsafe.Slice((*byte)(unsafe.Pointer(a)), size), unsafe.Slice((*byte)(unsafe.Pointer(b)), size))
}
