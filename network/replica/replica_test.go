package replica_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/replica"
)

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("member-%d", i))
	}
	return list
}

func cids(n int) (list []blob.CID) {
	for i := range n {
		list = append(list, blob.Of([]byte{byte(i), byte(i >> 8)}))
	}
	return list
}

// TestHolders checks that everybody agrees, and that blobs are spread evenly.
func TestHolders(t *testing.T) {
	members := names(10)
	load := map[string]int{}
	for _, c := range cids(1000) {
		want := replica.Holders(c, members, 3)
		shuffled := append(slices.Clone(members), members[0])
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled),
			func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := replica.Holders(c, shuffled, 3); !slices.Equal(got, want) || len(got) != 3 {
			t.Fatalf("holders %v and %v", got, want)
		}
		for _, m := range want {
			load[m]++
		}
	}
	for _, m := range members {
		if load[m] < 220 || load[m] > 380 {
			t.Errorf("%s holds %d of 1000 blobs, 300 is even", m, load[m])
		}
	}
	if got := replica.Holders(cids(1)[0], members[:2], 3); len(got) != 2 {
		t.Errorf("of two members hold %v", got)
	}
}

// TestMembersChange checks that a blob keeps its holders but for one when a member leaves or joins.
func TestMembersChange(t *testing.T) {
	members := names(12)
	for _, c := range cids(200) {
		before := replica.Holders(c, members, replica.Factor)
		for _, gone := range members {
			after := replica.Holders(c, slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == gone }),
				replica.Factor)
			kept := 0
			for _, m := range after {
				if slices.Contains(before, m) {
					kept++
				}
			}
			if held := slices.Contains(before, gone); held && kept != 2 || !held && kept != 3 {
				t.Fatalf("%s leaves: holders %v become %v", gone, before, after)
			}
		}
	}
}

// world is who has what.
type world map[string]map[blob.CID]bool

// member fetches from the members that from names.
type member struct {
	world world
	self  string
}

func (m member) Ensure(_ context.Context, c blob.CID, from []string) error {
	if m.world[m.self][c] {
		return nil
	}
	for _, f := range from {
		if m.world[f][c] {
			m.world[m.self][c] = true
			return nil
		}
	}
	return blob.ErrNotFound
}

// TestKeep lets members leave and join one after the other, in any order: no blob is lost, and every one has its
// holders again after each member has looked once.
func TestKeep(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	w := world{}
	present := names(8)
	for _, m := range present {
		w[m] = map[blob.CID]bool{}
	}
	blobs := cids(50)
	for _, c := range blobs {
		w[present[0]][c] = true
	}
	look := func() {
		for _, m := range present {
			if err := replica.Keep(t.Context(), member{w, m}, replica.Duties(m, blobs, present, replica.Factor),
				present); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range blobs {
			for _, m := range replica.Holders(c, present, replica.Factor) {
				if !w[m][c] {
					t.Fatalf("%s does not hold %s", m, c)
				}
			}
		}
	}
	look()
	for i := range 100 {
		if random.IntN(2) == 0 && len(present) > 4 {
			gone := random.IntN(len(present))
			delete(w, present[gone])
			present = slices.Delete(present, gone, gone+1)
		} else {
			m := fmt.Sprintf("new-%d", i)
			w[m], present = map[blob.CID]bool{}, append(present, m)
		}
		look()
	}
	lost := blob.Of([]byte("nobody has it"))
	if err := replica.Keep(t.Context(), member{w, present[0]}, []blob.CID{lost, blobs[0]}, present); !errors.Is(err,
		blob.ErrNotFound) {
		t.Errorf("Keep: %v", err)
	}
	if !w[present[0]][blobs[0]] {
		t.Error("a blob after a lost one was not fetched")
	}
}
