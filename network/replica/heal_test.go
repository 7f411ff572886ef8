package replica_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/replica"
)

// machine is a member with a host and a disk.
type machine struct {
	*peer.Host
	store *quota.Store
}

// newMachine starts the machine with a number, from which its identity follows, and with it what falls to it.
func newMachine(t *testing.T, number byte, most int64) machine {
	t.Helper()
	disk, err := blob.OpenDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store, err := quota.New(t.Context(), disk, most)
	if err != nil {
		t.Fatal(err)
	}
	h, err := peer.New(peer.Config{Key: peer.KeyFromSeed([32]byte{number}), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return machine{h, store}
}

// TestHoldersDie kills the holders of a shard one after the other, each time the one that has held it for the longest,
// until four members of eight are left, on disks that do not hold all shards: with time to heal in between, none is
// lost.
func TestHoldersDie(t *testing.T) {
	const each, shards = 300_000, 8
	members := map[string]machine{}
	var ids []string
	for i := range byte(8) {
		m := newMachine(t, i, shards*each-1)
		ids = append(ids, m.ID().String())
		members[m.ID().String()] = m
	}
	var blobs []blob.CID
	consumer := newMachine(t, 100, shards*each)
	for i := range shards {
		c, err := consumer.store.Put(t.Context(), blobtest.Data(uint64(i), each))
		if err != nil {
			t.Fatal(err)
		}
		blobs = append(blobs, c)
	}
	heal := func(extra ...string) {
		t.Helper()
		from := slices.Clone(extra)
		for _, id := range ids {
			from = append(from, members[id].Addrs()...)
		}
		for _, id := range ids {
			m := members[id]
			duties := replica.Duties(id, blobs, ids, replica.Factor)
			m.store.Pin("job", duties)
			if err := replica.Keep(t.Context(), m, duties, from); err != nil {
				t.Fatalf("%d members left: %v", len(ids), err)
			}
		}
	}
	heal(consumer.Addrs()...)
	if err := consumer.Close(); err != nil {
		t.Fatal(err)
	}
	shard, dead := blobs[0], 0
	for oldest := replica.Holders(shard, ids, replica.Factor); len(ids) > 4; dead++ {
		gone := oldest[0]
		if err := members[gone].Close(); err != nil {
			t.Fatal(err)
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == gone })
		heal()
		for _, id := range replica.Holders(shard, ids, replica.Factor) {
			if !slices.Contains(oldest, id) {
				oldest = append(oldest, id)
			}
		}
		oldest = oldest[1:]
	}
	if dead < 4 {
		t.Fatalf("%d holders died", dead)
	}
	for i, c := range blobs {
		holders := 0
		for _, id := range ids {
			if has, err := members[id].store.Has(t.Context(), c); err == nil && has {
				holders++
			}
		}
		var from []string
		for _, id := range ids {
			from = append(from, members[id].Addrs()...)
		}
		got, err := newMachine(t, 101+byte(i), each).Fetch(t.Context(), c, from)
		if err != nil || !bytes.Equal(got, blobtest.Data(uint64(i), each)) || holders < replica.Factor {
			t.Errorf("shard %d has %d holders, and is fetched: %v", i, holders, err)
		}
	}
}
