package release

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/message"
	"github.com/starling-network/starling/node/release/envelope"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/readers"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

type accounts map[string]registry.Participant

func (a accounts) Participant(_ context.Context, id string) (registry.Participant, error) {
	p, ok := a[id]
	if !ok {
		return p, errors.New("no such account")
	}
	return p, nil
}

// opened is a job of 40 shards, of which unit 0 is a worker's, with the record of its releases.
func opened(t *testing.T) (j *Job, a accounts, record *[]Release) {
	t.Helper()
	text := make([]byte, 40*100)
	for i := range text {
		text[i] = byte(i * i % 251)
	}
	c, err := data.Build([]source.File{{Format: source.Text, Data: text}}, tokenizer.Bytes(), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	a, record = accounts{"worker": {PeerID: "peer", Stake: 5}, "other": {PeerID: "other", Stake: 5}}, &[]Release{}
	j = &Job{ID: "job", Secret: envelope.Secret{1}, Manifest: c.Manifest(100), Accounts: a,
		Spec:   &train.Spec{Seed: 7, Units: 2, Steps: 3, Segment: 1, Batch: 2, Length: 16, Rounds: 9},
		Record: func(r Release) error { *record = append(*record, r); return nil }}
	return j, a, record
}

// running is a run whose units are assigned.
func running() (s run.State) {
	s.Phase = progress.Train
	for _, id := range []string{"other", "worker"} {
		s.Members = append(s.Members, crew.Member{ID: id, Role: crew.Worker, Active: true})
	}
	s.RoundState = work.RoundState{Round: 4, Units: work.Units{{Status: work.Assigned, Worker: "worker"},
		{Index: 1, Status: work.Assigned, Worker: "other"}}}
	return s
}

func reads(t *testing.T, j *Job, unit uint32) []int {
	t.Helper()
	list, err := Shards(j.Manifest, j.Spec, readers.Reading{UnitID: work.UnitID{Round: 4, Unit: unit}})
	if err != nil || len(list) == 0 || len(list) == len(j.Manifest.Shards) {
		t.Fatalf("the unit reads shards %v, %v", list, err)
	}
	return list
}

// A member gets the keys of the shards that its unit reads, all at once, and of no other; each is recorded once.
func TestKeysOfAUnit(t *testing.T) {
	j, _, record := opened(t)
	private, err := envelope.NewPrivate()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(shard int) (envelope.Keys, error) {
		sealed, err := j.release(t.Context(), "peer", Question{Job: "job", Member: "worker",
			Public: private.PublicKey().Bytes(), Shard: uint32(shard)})
		if err != nil {
			return nil, err
		}
		return envelope.Disclose(private, "job", "worker", sealed)
	}
	mine := reads(t, j, 0)
	away := errors.New("the network does not answer")
	j.Run = func(context.Context) (run.State, error) { return run.State{}, away }
	if _, err := ask(mine[0]); !errors.Is(err, away) {
		t.Errorf("before the run is known: %v", err)
	}
	queries := 0
	s := running()
	s.Units = s.Units[1:]
	j.Run = func(context.Context) (run.State, error) { queries++; return s, nil }
	if _, err := ask(mine[0]); !errors.Is(err, NoUnit) || queries != 1 {
		t.Errorf("before the unit is assigned: %v, %d queries", err, queries)
	}
	s = running()
	j.read = j.read.Add(-young)
	for range 2 {
		for i := range j.Manifest.Shards {
			got, err := ask(i)
			if !slices.Contains(mine, i) {
				if !errors.Is(err, NoUnit) {
					t.Errorf("the key of shard %d of another unit: %v", i, err)
				}
				continue
			}
			if err != nil || len(got) != len(mine) {
				t.Fatalf("%d keys, the unit reads %d shards: %v", len(got), len(mine), err)
			}
			for k, key := range got {
				if !slices.Contains(mine, k) || !slices.Equal(key, j.Secret.Key(k, j.Manifest.Shards[k])) {
					t.Errorf("the key of shard %d is wrong", k)
				}
			}
		}
	}
	if queries != 2 {
		t.Errorf("%d queries of the network", queries)
	}
	want := Release{Round: 5, For: readers.Trains, Member: "worker", Peer: "peer",
		Shards: slices.Sorted(slices.Values(mine))}
	if len(*record) != 1 || canon.Hash("r", (*record)[0].Shards) != canon.Hash("r", want.Shards) ||
		(*record)[0].Round != want.Round || (*record)[0].For != want.For {
		t.Errorf("recorded %+v, wanted %+v", *record, want)
	}
	j.Record = func(Release) error { return errors.New("the disk is full") }
	j.given = nil
	if _, err := ask(mine[0]); err == nil {
		t.Error("a key is released that is not recorded")
	}
	s.RoundState = work.RoundState{Round: 7}
	j.read = j.read.Add(-stale)
	if _, err := ask(mine[0]); !errors.Is(err, NoUnit) {
		t.Errorf("the key of a unit that is final: %v", err)
	}
	if len(j.shards) > 0 || len(j.given) > 0 {
		t.Error("rounds that are final are remembered")
	}
}

// An account gets no key for another peer, without a stake, or on a machine that is not attested as the job wants.
func TestKeysForWhomTheJobTrusts(t *testing.T) {
	image := canon.Sum("image")
	for _, c := range []struct {
		name string
		p    registry.Participant
		all  bool // of any machine
		want error
	}{
		{"staked", registry.Participant{PeerID: "peer", Stake: 1}, true, nil},
		{"another peer", registry.Participant{PeerID: "pee", Stake: 1}, true, OtherPeer},
		{"no stake", registry.Participant{PeerID: "peer"}, true, NoStake},
		{"earning it", registry.Participant{PeerID: "peer", Stake: 1, Earning: true}, true, NoStake},
		{"barred", registry.Participant{PeerID: "peer", Stake: 1, Jailed: true}, true, NoStake},
		{"no quote", registry.Participant{PeerID: "peer", Stake: 1}, false, NotAttested},
		{"another image", registry.Participant{PeerID: "peer", Stake: 1,
			Quote: registry.Quote{Measurement: canon.Sum("other"), Until: 99}}, false, NotAttested},
		{"attested", registry.Participant{PeerID: "peer", Stake: 1,
			Quote: registry.Quote{Measurement: image, Until: 99}}, false, nil},
	} {
		j, a, _ := opened(t)
		a["worker"] = c.p
		j.Attested, j.Listed = !c.all, terms.Attested{Measurements: []canon.Digest{image}}
		j.Run = func(context.Context) (run.State, error) { return running(), nil }
		private, err := envelope.NewPrivate()
		if err != nil {
			t.Fatal(err)
		}
		_, err = j.release(t.Context(), "peer", Question{Job: "job", Member: "worker",
			Public: private.PublicKey().Bytes(), Shard: uint32(reads(t, j, 0)[0])})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, wanted %v", c.name, err, c.want)
		}
	}
}

// Questions of accounts that are not in the run make a consumer read the run once in a while, and query no accounts.
func TestStrangersCostNoQueries(t *testing.T) {
	j, _, _ := opened(t)
	queries := 0
	j.Run = func(context.Context) (run.State, error) { queries++; return running(), nil }
	ask := func(member string) {
		q := Question{Job: "job", Member: member, Public: make([]byte, maxPublic), Shard: 1}
		if _, err := j.release(t.Context(), "peer", q); !errors.Is(err, NoUnit) {
			t.Errorf("a key for %s: %v", member, err)
		}
	}
	ask("stranger")
	for range 5 {
		j.read = j.read.Add(-young)
		ask("stranger")
		j.read = j.read.Add(young)
	}
	if queries != 1 {
		t.Errorf("%d queries of the network", queries)
	}
}

// A member on probation gets the keys of one unit until the deadline of its task: it would else see another unit each
// time that it leaves and joins, without work. Once it has shown what it had to, it may begin again.
func TestProbationShowsOneUnit(t *testing.T) {
	j, a, record := opened(t)
	a["new"] = registry.Participant{PeerID: "peer", Stake: 1}
	private, err := envelope.NewPrivate()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name            string
		unit            uint32
		asked, deadline int64
		shown           bool // it is active, and has no task
		want            error
	}{
		{name: "the first task", unit: 0, asked: 10, deadline: 50},
		{name: "again", unit: 0, asked: 10, deadline: 50},
		{name: "it left and joined", unit: 1, asked: 12, deadline: 52, want: TooSoon},
		{name: "the first once more", unit: 0, asked: 14, deadline: 54},
		{name: "and another, when the first deadline is past", unit: 1, asked: 50, deadline: 90},
		{name: "it is active", shown: true, want: NoUnit},
		{name: "it left, and joins after work", unit: 0, asked: 60, deadline: 100},
	} {
		s := running()
		s.Members = append([]crew.Member{{ID: "new", Role: crew.Worker, Active: c.shown}}, s.Members...)
		if !c.shown {
			s.Probations = []progress.Probation{{Member: "new", Asked: c.asked, Deadline: c.deadline,
				Task: progress.ProbationTask{Round: 4, Unit: c.unit, Worker: "other"}}}
		}
		j.Run, j.read = func(context.Context) (run.State, error) { return s, nil }, time.Time{}
		_, err := j.release(t.Context(), "peer", Question{Job: "job", Member: "new", Public: private.PublicKey().Bytes(),
			Shard: uint32(reads(t, j, c.unit)[0])})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, wanted %v", c.name, err, c.want)
		}
	}
	if len(*record) != 2 || (*record)[0].For != readers.Proves {
		t.Errorf("recorded %+v", *record)
	}
}

// A host answers for the jobs that are open there, and with a reason where it releases nothing.
func TestKeyServer(t *testing.T) {
	host := func(seed byte) *peer.Host {
		h, err := peer.New(peer.Config{Key: peer.KeyFromSeed([32]byte{seed}), Store: blob.NewMemory()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	j, a, _ := opened(t)
	consumer, worker, other := host(1), host(2), host(3)
	a["worker"] = registry.Participant{PeerID: worker.ID().String(), Stake: 1}
	j.Run = func(context.Context) (run.State, error) { return running(), nil }
	d := NewServer(consumer)
	private, err := envelope.NewPrivate()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(h *peer.Host) (envelope.Keys, error) {
		q := Question{Job: "job", Member: "worker", Public: private.PublicKey().Bytes(), Shard: uint32(reads(t, j, 0)[0])}
		body, err := h.Ask(t.Context(), address.Others(h.ID(), consumer.Addrs())[0], message.Keys, canon.MustMarshal(q))
		if err != nil {
			return nil, err
		}
		return ParseAnswer(body, func(sealed []byte) (envelope.Keys, error) {
			return envelope.Disclose(private, "job", "worker", sealed)
		})
	}
	if _, err := ask(worker); err == nil {
		t.Error("keys of a job that is not open")
	}
	closes := d.Open(j)
	if keys, err := ask(worker); err != nil || len(keys) == 0 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	if _, err := ask(other); !errors.Is(err, OtherPeer) {
		t.Errorf("a peer that says it is another: %v", err)
	}
	closes()
	if _, err := ask(worker); err == nil {
		t.Error("keys of a job that is closed")
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add(canon.MustMarshal(Question{Job: "job", Member: "worker", Public: make([]byte, maxPublic)}))
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := ParseQuestion(body)
		if err == nil && (q.Job == "" || len(q.Public) != maxPublic || string(canon.MustMarshal(q)) != string(body)) {
			t.Errorf("%+v of %x", q, body)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(canon.MustMarshal(Answer{Refused: NoUnit}))
	f.Add(canon.MustMarshal(Answer{Envelope: []byte{1}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		keys, err := ParseAnswer(body, func([]byte) (envelope.Keys, error) { return nil, envelope.ErrEnvelope })
		if err == nil || keys != nil || err.Error() == "" {
			t.Errorf("%v, %v", keys, err)
		}
	})
}
