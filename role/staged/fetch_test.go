package staged

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
)

// served are the blobs that other members serve.
type served map[string][]byte

// Fetch implements engine.Peers.
func (s served) Fetch(_ context.Context, c blob.CID, _ []string) ([]byte, error) {
	b, ok := s[c.String()]
	if !ok {
		return nil, blob.ErrNotFound
	}
	return b, nil
}

// Each implements engine.Peers.
func (served) Each(n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

func (s served) put(b []byte) blob.CID {
	c := blob.Of(b)
	s[c.String()] = b
	return c
}

// committed are the units of a replica, with the records of the values that they have exchanged.
func (s served) committed(t *testing.T, x *Engine, base terms.Checkpoint) work.Units {
	t.Helper()
	var replica work.Units
	for unit := range uint32(len(x.plan.Stages)) {
		v, err := x.whole(t.Context(), base, unit)
		if err != nil {
			t.Fatal(err)
		}
		var r Record
		u := &work.Unit{Index: unit, Status: work.Committed}
		for _, l := range link.OfStage(x.plan, int(unit)) {
			var cids [][]byte
			for step := range x.Task().Spec.Steps {
				b, err := v.bytes(x.plan, l, step)
				if err != nil {
					t.Fatal(err)
				}
				cids = append(cids, s.put(b).Bytes())
			}
			r.Links = append(r.Links, cids)
			h, err := v.head(x.plan, l, x.Task().Spec.Steps)
			if err != nil {
				t.Fatal(err)
			}
			u.Commit.Links = append(u.Commit.Links, work.Exchanged{Chain: h})
		}
		u.Commit.HandedState.Root = work.LinksRoot(u.Commit.Links)
		u.Commit.HandedState.CID = s.put(canon.MustMarshal(r)).String()
		replica = append(replica, u)
	}
	return replica
}

// The record of a stage is what its worker says, and nothing compares it with the heads of its links when it commits.
// If it names other values than those, or none, the values that the stage has received come from those that sent them.
func TestARecordThatLies(t *testing.T) {
	task, genesis := cutTask(t)
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	e, err := engine.New(terms.Terms{Job: "fox"}, task, blob.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Hold(base, genesis)
	peers := served{}
	x := New(&Engine{Engine: e, Job: "fox", Threads: 1, Peers: peers})
	replica := peers.committed(t, x, base)
	const stage = 1
	honest := peers[replica[stage].Commit.HandedState.CID]
	r, err := decodeRecord(honest)
	if err != nil {
		t.Fatal(err)
	}
	zeros := Record{}
	for _, cids := range r.Links {
		var list [][]byte
		for _, cid := range cids {
			id, err := blob.FromBytes(cid)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, peers.put(make([]byte, len(peers[id.String()]))).Bytes())
		}
		zeros.Links = append(zeros.Links, list)
	}
	for name, record := range map[string][]byte{
		"its own":      honest,
		"no record":    []byte("none"),
		"no links":     canon.MustMarshal(Record{}),
		"other values": canon.MustMarshal(zeros),
	} {
		replica[stage].Commit.HandedState.CID = peers.put(record).String()
		v, err := x.fetch(t.Context(), replica, stage, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if ok, err := v.agrees(x.plan, stage, task.Spec.Steps, replica[stage].Commit); err != nil || !ok {
			t.Errorf("%s: values that were not exchanged, %v", name, err)
		}
	}
}

// Where both sides of a link hide its values, and right stages send others, a verifier computes all stages once,
// however often it tries again.
func TestAllStagesAreComputedOnce(t *testing.T) {
	task, genesis := cutTask(t)
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	e, err := engine.New(terms.Terms{Job: "fox"}, task, blob.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Hold(base, genesis)
	var lies scratched
	peers := served{}
	x := New(&Engine{Engine: e, Job: "fox", Threads: 1, Peers: peers, Aside: &lies})
	replica := peers.committed(t, x, base)
	clear(peers)
	const stage = 1
	for i := range replica[stage].Commit.Links {
		replica[stage].Commit.Links[i].Chain = canon.Sum("other")
	}
	replica[stage].Commit.HandedState.Root = work.LinksRoot(replica[stage].Commit.Links)
	x.run.Terms.Pipeline.Flops = make([]uint64, len(replica))
	x.run.RoundState = work.RoundState{Base: base, Units: replica}
	lies.made = 0
	var made []int
	for range maxTries + 2 {
		err := x.Start(t.Context(), base, stage, []string{"holder"})
		lacks, ok := errors.AsType[*role.LacksLink](err)
		if !ok || link.OfStage(x.plan, stage)[lacks.Links[0]-1].To != stage {
			t.Fatalf("values that no member has: %v", err)
		}
		made = append(made, lies.made)
	}
	if once := made[maxTries-1]; once == 0 || made[maxTries-2] != 0 || made[maxTries+1] != once {
		t.Errorf("after each try %v bytes were made", made)
	}
}
