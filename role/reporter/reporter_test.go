package reporter

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
)

// inRun is a run of members.
func inRun(job string, phase progress.Phase, members ...string) run.State {
	s := run.State{Progress: progress.Progress{Crew: crew.Crew{Terms: terms.Terms{Job: job}}, Phase: phase}}
	slices.Sort(members)
	for _, id := range members {
		s.Members = append(s.Members, crew.Member{ID: id})
	}
	return s
}

// hosts are participants whose peers have the names of their accounts with a prefix.
func hosts(accounts ...string) (list []registry.Participant) {
	for _, id := range accounts {
		list = append(list, registry.Participant{ID: id, PeerID: "peer-" + id})
	}
	return list
}

func expect(t *testing.T, got []Report, want ...Report) {
	t.Helper()
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReport(t *testing.T) {
	r := New("me", 100)
	v := View{
		Runs: []run.State{inRun("two", progress.Train, "me", "a", "b"), inRun("one", progress.Train, "me", "b", "c"),
			inRun("over", progress.Done, "me", "d"), inRun("other", progress.Train, "e", "a")},
		Participants: hosts("a", "b", "c", "d", "e", "me"),
		Readings: []Reading{
			{Peer: "peer-a", Bytes: 400, Timed: 200, Micros: 50_000, RTT: 9}, {Peer: "peer-b", Bytes: 1000},
			{Peer: "peer-c", Bytes: 99},
			{Peer: "peer-d", Bytes: 1000}, {Peer: "peer-e", Bytes: 1000}, {Peer: "peer-me", Bytes: 1000},
			{Peer: "peer-nobody", Bytes: 1000},
		},
	}
	expect(t, r.Report(v), Report{"one", "b", registry.Link{Bytes: 1000}},
		Report{"two", "a", registry.Link{Bytes: 400, Millis: 100, RTT: 9}})
	expect(t, r.Report(v))
	v.Readings[0].Bytes, v.Readings[0].Timed, v.Readings[0].Micros = 600, 250, 60_000
	v.Readings[2].Bytes = 100 // both before and after the first report
	expect(t, r.Report(v), Report{"two", "a", registry.Link{Bytes: 200, RTT: 9}},
		Report{"one", "c", registry.Link{Bytes: 100}})
	v.Readings[0] = Reading{Peer: "peer-a", Bytes: 150, Timed: 150, Micros: 1} // measured from nothing again
	expect(t, r.Report(v), Report{"two", "a", registry.Link{Bytes: 150, Millis: 1}})
	v.Participants[0].PeerID = "peer-nobody" // it moved
	expect(t, r.Report(v), Report{"two", "a", registry.Link{Bytes: 1000}})
	expect(t, New("me", 100).Report(View{Readings: v.Readings, Participants: v.Participants}))
}

// A report is due once in every twelfth of an epoch, but not at once, not for all at the same block, and once more
// after the last round of a run.
func TestDue(t *testing.T) {
	const epoch, from, turns = 1200, 5000, 10
	at := map[int64]int{}
	for i := range 100 {
		r := New(fmt.Sprint("account ", i), 1)
		var due []int64
		for height := int64(from); height < from+turns*100; height++ {
			if r.Due(height, epoch, nil) {
				due = append(due, height)
				at[height%100]++
			}
		}
		if len(due) < turns-1 || len(due) > turns || due[len(due)-1]-due[0] != int64(len(due)-1)*100 || due[0] == from {
			t.Fatalf("due at %v", due)
		}
	}
	if len(at) < 50 {
		t.Errorf("a hundred accounts report at %d of a hundred blocks", len(at))
	}
	r := New("a", 1)
	training, settling := []run.State{inRun("job", progress.Train, "a")}, []run.State{inRun("job", progress.Settle, "a")}
	var got []bool
	for i, runs := range [][]run.State{training, settling, settling, training, settling, nil} { // with a rollback
		got = append(got, r.Due(int64(i), 1<<40, runs))
	}
	if want := []bool{false, true, false, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("after the last round: %v, want %v", got, want)
	}
	if r := New("a", 1); r.Due(1, 0, nil) || !r.Due(2, 0, nil) {
		t.Error("epochs shorter than their parts")
	}
}

// For any measurements, in any order, reports are few, about other members, acceptable, and of no byte twice.
func FuzzReport(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		x := rand.New(rand.NewPCG(seed, 0))
		var members, strangers []string
		for i := range 20 {
			if id := fmt.Sprint("p", i); x.IntN(3) > 0 {
				members = append(members, id)
			} else {
				strangers = append(strangers, id)
			}
		}
		v := View{Runs: []run.State{inRun("job", progress.Attest, append(members, "me")...)},
			Participants: hosts(slices.Concat(members, strangers, []string{"me"})...)}
		for _, p := range v.Participants {
			v.Readings = append(v.Readings, Reading{Peer: p.PeerID})
		}
		const least = 1 << 10
		r, again, said := New("me", least), New("me", least), map[string]uint64{}
		for range 10 {
			for i := range v.Readings {
				more := x.Uint64() >> (20 + x.IntN(44))
				timed := x.Uint64N(more + 1)
				v.Readings[i].Bytes += more
				v.Readings[i].Timed += timed
				v.Readings[i].Micros += timed * x.Uint64N(1000)
				v.Readings[i].RTT = x.Uint32() >> x.IntN(32)
			}
			reports := r.Report(v)
			shuffled := View{v.Runs, slices.Clone(v.Participants), slices.Clone(v.Readings)}
			x.Shuffle(len(shuffled.Readings), func(i, j int) {
				shuffled.Readings[i], shuffled.Readings[j] = shuffled.Readings[j], shuffled.Readings[i]
				shuffled.Participants[i], shuffled.Participants[j] = shuffled.Participants[j], shuffled.Participants[i]
			})
			if other := again.Report(shuffled); !reflect.DeepEqual(other, reports) {
				t.Fatalf("%+v, and in another order %+v", reports, other)
			}
			if len(reports) > most {
				t.Fatalf("%d reports", len(reports))
			}
			for _, a := range reports {
				if !slices.Contains(members, a.Peer) || a.Job != "job" || a.Link.Bytes < least {
					t.Fatalf("%+v", a)
				}
				if _, err := (registry.Link{}).Report(a.Link, a.Link.Bytes); err != nil {
					t.Fatal(err)
				}
				said[a.Peer] += a.Link.Bytes
			}
		}
		for i, p := range v.Participants {
			if said[p.ID] > v.Readings[i].Bytes {
				t.Fatalf("%s gave %d bytes, %d are reported", p.ID, v.Readings[i].Bytes, said[p.ID])
			}
		}
	})
}
