package runstore

import (
	"bytes"
	"context"
	"slices"
	"strconv"

	"cosmossdk.io/collections"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// rolled is the first key of rounds that were rolled back; a later round may have the same number. It exceeds every
// round number (terms.MaxRounds).
const rolled = 1 << 31

// keyed is a round of a state with its key in the store.
type keyed struct {
	key uint32
	lap *work.RoundState
}

// liveRounds returns the rounds of a run that are stored: final ones that are read, the open ones, the current one, and
// those rolled back.
func liveRounds(s *run.State) (all []keyed) {
	for _, rounds := range [][]work.RoundState{s.Read, s.Open} {
		for i := range rounds {
			all = append(all, keyed{rounds[i].Round, &rounds[i]})
		}
	}
	all = append(all, keyed{s.Round, &s.RoundState})
	for i := range s.RolledBack {
		all = append(all, keyed{rolled + uint32(i), &s.RolledBack[i]})
	}
	return all
}

// bare is a round without its lists.
func bare(l work.RoundState) storedRound {
	stored := storedRound{Lap: l, Units: uint32(len(l.Units)), From: len(l.From) > 0}
	stored.Lap.Units, stored.Lap.From = nil, nil
	return stored
}

// bareHead is the head of a state, without its stamp.
func bareHead(s run.State) head {
	h := head{
		State: s, Void: uint32(len(s.RolledBack)), Members: uint32(len(s.Members)), Votes: uint32(len(s.Votes)),
		Slices: uint32(len(s.Slices)), Trials: uint32(len(s.Probations)),
	}
	for _, l := range s.Open {
		h.Open = append(h.Open, l.Round)
	}
	for _, l := range s.Read {
		h.Read = append(h.Read, l.Round)
	}
	h.State.Terms, h.State.LatestFinal, h.State.RoundState = terms.Terms{}, progress.ProbationTask{},
		work.RoundState{Round: s.Round}
	h.State.Open, h.State.Read, h.State.RolledBack, h.State.Members = nil, nil, nil, nil
	h.State.Votes, h.State.Slices, h.State.Probations = nil, nil, nil
	return h
}

// parts writes all separate parts that differ, and returns the head.
func (s *Store) parts(w *writer, job string, before, after run.State) head {
	at := func(i uint32) pair { return collections.Join(job, i) }
	known := map[uint32]work.RoundState{}
	for _, l := range liveRounds(&before) {
		known[l.key] = *l.lap
	}
	alone := func(uint32) string { return job }
	write(w, s.terms, alone, one(before, &before.Terms), []terms.Terms{after.Terms}, nil)
	write(w, s.samples, alone, one(before, &before.LatestFinal), []progress.ProbationTask{after.LatestFinal}, nil)
	for _, l := range liveRounds(&after) {
		var header []storedRound
		old, ok := known[l.key]
		if ok {
			header = []storedRound{bare(old)}
		}
		delete(known, l.key)
		here := func(uint32) pair { return at(l.key) }
		write(w, s.rounds, here, header, []storedRound{bare(*l.lap)}, nil)
		write(w, s.froms, here, handed(old), handed(*l.lap), sameCarried)
		write(w, s.units, within(job, l.key), old.Units, l.lap.Units, sameUnit)
	}
	for _, l := range liveRounds(&before) { // in the order of rounds
		if old, gone := known[l.key]; gone {
			here := func(uint32) pair { return at(l.key) }
			write(w, s.rounds, here, []storedRound{bare(old)}, nil, nil)
			write(w, s.froms, here, handed(old), nil, sameCarried)
			write(w, s.units, within(job, l.key), old.Units, nil, sameUnit)
		}
	}
	write(w, s.members, at, before.Members, after.Members, sameMember)
	write(w, s.votes, at, before.Votes, after.Votes, sameVote)
	write(w, s.slices, at, before.Slices, after.Slices, sameSlice)
	write(w, s.trials, at, before.Probations, after.Probations, nil)
	return bareHead(after)
}

// one returns a part of a state as a list; nil if the state is not a stored one.
func one[T any](s run.State, part *T) []T {
	if len(s.Members) == 0 {
		return nil
	}
	return []T{*part}
}

// handed returns the states that the units of a round start from, as one part: it is written once, when the round
// begins.
func handed(l work.RoundState) [][]work.HandedState {
	if len(l.From) == 0 {
		return nil
	}
	return [][]work.HandedState{l.From}
}

func within(job string, lap uint32) func(uint32) triple {
	return func(i uint32) triple { return collections.Join3(job, lap, i) }
}

// writer collects the digests of all writes of one state.
type writer struct {
	ctx     context.Context
	changed [][]byte
	err     error
}

// write stores the elements of a list that differ from the old list, and removes the surplus old elements. same may
// return true only for elements with equal canonical bytes; nil: the bytes are compared.
func write[K, T any](
	w *writer, m collections.Map[K, []byte], key func(uint32) K, before, after []T, same func(a, b T) bool,
) {
	for i := range after {
		if w.err != nil {
			return
		}
		if i < len(before) && same != nil && same(before[i], after[i]) {
			continue
		}
		text := canon.MustMarshal(after[i])
		if i < len(before) && bytes.Equal(canon.MustMarshal(before[i]), text) {
			continue
		}
		w.changed = append(w.changed, text)
		w.err = m.Set(w.ctx, key(uint32(i)), text)
	}
	for i := len(after); i < len(before) && w.err == nil; i++ {
		w.err = m.Remove(w.ctx, key(uint32(i)))
	}
}

// sameUnit compares pointers: a rule that changes a unit replaces it by a copy (run.transition). For equal copies
// sameUnit returns false, and write then compares the bytes.
func sameUnit(a, b *work.Unit) bool { return a == b }

// sameCarried compares the addresses of lists: no rule changes the states that a round starts from.
func sameCarried(a, b []work.HandedState) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

func sameMember(a, b crew.Member) bool { return a == b }

func sameVote(a, b progress.Vote) bool {
	return a.Member == b.Member && a.Next == b.Next && sameBytes(a.PublicKey, b.PublicKey) &&
		sameBytes(a.Signature, b.Signature)
}

func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func sameSlice(a, b progress.Slice) bool {
	return a.Status == b.Status && a.Panel == b.Panel && a.Audited == b.Audited && a.Sealed == b.Sealed &&
		a.CID == b.CID && slices.Equal(a.Reducers, b.Reducers) && (a.Reducers == nil) == (b.Reducers == nil)
}

// Genesis adds the stored parts of a state in the JSON form of a genesis: collection, key, value.
func Genesis(s run.State, add func(collection string, key, value any)) {
	job := s.Terms.Job
	number := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) } // numbers in keys are strings
	add("runs", job, bareHead(s))
	add("terms", job, s.Terms)
	add("samples", job, s.LatestFinal)
	for _, l := range liveRounds(&s) {
		add("laps", []string{job, number(l.key)}, bare(*l.lap))
		if len(l.lap.From) > 0 {
			add("froms", []string{job, number(l.key)}, l.lap.From)
		}
		each(l.lap.Units, func(i string, u any) { add("units", []string{job, number(l.key), i}, u) })
	}
	each(s.Members, func(i string, m any) { add("members", []string{job, i}, m) })
	each(s.Votes, func(i string, v any) { add("votes", []string{job, i}, v) })
	each(s.Slices, func(i string, x any) { add("slices", []string{job, i}, x) })
	each(s.Probations, func(i string, x any) { add("trials", []string{job, i}, x) })
}

func each[T any](list []T, do func(i string, v any)) {
	for i, v := range list {
		do(strconv.Itoa(i), v)
	}
}
