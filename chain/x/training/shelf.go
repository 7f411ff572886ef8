package training

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"cosmossdk.io/collections"
	"cosmossdk.io/collections/codec"
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
// Reading would still cost the whole, so the latest state of a run is remembered beside the store. The head carries a digest of
// all writes that made it: a state is remembered under that digest, and so is never another than the store holds. What is
// remembered changes nothing but speed: parts are read without gas, and written if their bytes differ.
type shelf struct {
	heads   collections.Map[string, head]
	members collections.Map[collections.Pair[string, uint32], run.Member]
	units   collections.Map[collections.Triple[string, uint32, uint32], run.Unit] // job, round, index
	votes   collections.Map[collections.Pair[string, uint32], run.Vote]
	slices  collections.Map[collections.Pair[string, uint32], run.Slice]

	mu     sync.Mutex
	latest map[string]stamped
}

// head is a state without its lists, which have as many parts as it says.
type head struct {
	State  run.State    `cbor:"1,keyasint"`
	Stamp  canon.Digest `cbor:"2,keyasint"`
	Counts []uint32     `cbor:"3,keyasint"` // units of the open rounds, oldest first, and of the current one; members, votes, slices
}

type stamped struct {
	stamp canon.Digest
	state run.State
}

// remembered is how many runs, and how many heads, are remembered at most.
const remembered = 64

// headCodec remembers what the bytes of heads mean: a message reads the head of its run twice, and the message before it has
// written that. Nobody changes a head that it was given.
type headCodec struct {
	codec.ValueCodec[head]

	mu    sync.Mutex
	known map[string]head // by their bytes
}

// Encode implements codec.ValueCodec.
func (c *headCodec) Encode(h head) ([]byte, error) {
	text, err := c.ValueCodec.Encode(h)
	if err == nil {
		c.remember(text, h)
	}
	return text, err
}

// Decode implements codec.ValueCodec.
func (c *headCodec) Decode(text []byte) (head, error) {
	c.mu.Lock()
	h, ok := c.known[string(text)]
	c.mu.Unlock()
	if ok {
		return h, nil
	}
	h, err := c.ValueCodec.Decode(text)
	if err == nil {
		c.remember(text, h)
	}
	return h, err
}

func (c *headCodec) remember(text []byte, h head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= remembered {
		clear(c.known)
	}
	c.known[string(text)] = h
}

func newShelf(b *collections.SchemaBuilder) *shelf {
	job, u32 := collections.StringKey, collections.Uint32Key
	pair, triple := collections.PairKeyCodec(job, u32), collections.TripleKeyCodec(job, u32, u32)
	return &shelf{
		heads:   collections.NewMap(b, collections.NewPrefix(0), "runs", job, codec.ValueCodec[head](&headCodec{ValueCodec: adapter.Record[head](), known: map[string]head{}})),
		members: collections.NewMap(b, collections.NewPrefix(8), "members", pair, adapter.Record[run.Member]()),
		units:   collections.NewMap(b, collections.NewPrefix(9), "units", triple, adapter.Record[run.Unit]()),
		votes:   collections.NewMap(b, collections.NewPrefix(10), "votes", pair, adapter.Record[run.Vote]()),
		slices:  collections.NewMap(b, collections.NewPrefix(11), "slices", pair, adapter.Record[run.Slice]()),
		latest:  map[string]stamped{},
	}
}

// get returns the state of a run, or collections.ErrNotFound.
func (s *shelf) get(ctx context.Context, job string) (run.State, error) {
	h, err := s.heads.Get(ctx, job)
	if err != nil {
		return run.State{}, err
	}
	return s.fill(ctx, job, h)
}

// fill puts the parts into a head.
func (s *shelf) fill(ctx context.Context, job string, h head) (run.State, error) {
	s.mu.Lock()
	known, ok := s.latest[job]
	s.mu.Unlock()
	if ok && known.stamp == h.Stamp {
		return known.state, nil
	}
	free := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	state := h.State
	state.Open = slices.Clone(state.Open)
	n := len(state.Open)
	if len(h.Counts) != n+4 {
		return state, fmt.Errorf("training: the head of %s counts %d lists instead of %d", job, len(h.Counts), n+4)
	}
	for i, lap := range laps(&state) {
		for index := range h.Counts[i] {
			u, err := s.units.Get(free, collections.Join3(job, lap.Round, index))
			if err != nil {
				return state, err
			}
			lap.Units = append(lap.Units, u)
		}
	}
	var err error
	if state.Members, err = list(free, s.members, job, h.Counts[n+1]); err != nil {
		return state, err
	}
	if state.Votes, err = list(free, s.votes, job, h.Counts[n+2]); err != nil {
		return state, err
	}
	if state.Slices, err = list(free, s.slices, job, h.Counts[n+3]); err != nil {
		return state, err
	}
	if !ok {
		s.remember(job, stamped{h.Stamp, state})
	}
	return state, nil
}

// laps are the open rounds of a run, oldest first, and the current one.
func laps(s *run.State) (all []*run.Lap) {
	for i := range s.Open {
		all = append(all, &s.Open[i])
	}
	return append(all, &s.Lap)
}

func list[T any](ctx context.Context, m collections.Map[collections.Pair[string, uint32], T], job string, n uint32) (all []T, err error) {
	for i := range n {
		v, err := m.Get(ctx, collections.Join(job, i))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func (s *shelf) remember(job string, known stamped) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.latest) >= remembered {
		for other := range s.latest { // whichever: it is read again when it is asked for
			delete(s.latest, other)
			break
		}
	}
	s.latest[job] = known
}

// set stores a state: what differs from the one in the store.
func (s *shelf) set(ctx context.Context, job string, after run.State) error {
	var before run.State
	old, err := s.heads.Get(ctx, job)
	switch {
	case err == nil:
		if before, err = s.fill(ctx, job, old); err != nil {
			return err
		}
	case !errors.Is(err, collections.ErrNotFound):
		return err
	}
	w := &writer{changed: [][]byte{old.Stamp[:]}}
	bases := map[uint32][]run.Unit{}
	for _, lap := range laps(&before) {
		bases[lap.Round] = lap.Units
	}
	next := head{State: after}
	next.State.Open = append([]run.Lap(nil), after.Open...)
	for _, lap := range laps(&next.State) {
		round := lap.Round
		write(ctx, w, s.units, func(i uint32) collections.Triple[string, uint32, uint32] { return collections.Join3(job, round, i) }, bases[round], lap.Units)
		delete(bases, round)
		next.Counts = append(next.Counts, uint32(len(lap.Units)))
		lap.Units = nil
	}
	for _, lap := range laps(&before) {
		if units, gone := bases[lap.Round]; gone {
			round := lap.Round
			write(ctx, w, s.units, func(i uint32) collections.Triple[string, uint32, uint32] { return collections.Join3(job, round, i) }, units, nil)
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
	was, text := old, canon.MustMarshal(next)
	was.Stamp = canon.Digest{}
	if len(w.changed) == 1 && err == nil && bytes.Equal(canon.MustMarshal(was), text) {
		return nil
	}
	next.Stamp = canon.Sum("starling/training/run/1", append(w.changed, text)...)
	s.remember(job, stamped{next.Stamp, after})
	return s.heads.Set(ctx, job, next)
}

// writer gathers what is written for one state.
type writer struct {
	changed [][]byte
	err     error
}

// write stores the elements of a list that differ from those before, and removes those that are too many.
func write[K, T any](ctx context.Context, w *writer, m collections.Map[K, T], key func(uint32) K, before, after []T) {
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
		w.err = m.Set(ctx, key(uint32(i)), after[i])
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
