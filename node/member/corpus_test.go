package member

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/role/bundle"
)

// Members with little room keep as many shards as fit, and different ones, so that few have no holder.
func TestMembersKeepTheShardsThatFit(t *testing.T) {
	const number, tokens = 60, 1000
	m := data.Manifest{Vocab: 32, Width: 2, TrainTokens: number*tokens - 1, ShardTokens: tokens,
		Shards: make([]canon.Digest, number)}
	var shards []blob.CID
	for i := range number {
		shards = append(shards, blob.Of(blobtest.Data(uint64(i), 8)))
	}
	members := []string{"a", "b", "c", "d", "e", "f"}
	keep := func(id string, room int64) []blob.CID {
		k := &replicator{id: id, factor: 3, job: &bundle.Job{Data: m}, room: room, data: corpus{shards: shards}}
		kept := k.keptShards(members)
		if !slices.Equal(k.keptShards(members), kept) {
			t.Errorf("%s keeps others the second time", id)
		}
		return kept
	}
	all, few := map[blob.CID]int{}, map[blob.CID]int{}
	for _, id := range members {
		for _, c := range keep(id, m.Bytes()) {
			all[c]++
		}
		const fits = 12
		mine := keep(id, fits*m.ShardBytes(0)+1)
		if len(mine) != fits {
			t.Errorf("%s keeps %d shards, %d fit", id, len(mine), fits)
		}
		for _, c := range mine {
			few[c]++
		}
		if none := keep(id, m.ShardBytes(0)-1); len(none) > 1 { // the last shard is smaller
			t.Errorf("%s keeps %d shards, none fits", id, len(none))
		}
	}
	for _, c := range shards {
		if all[c] != 3 {
			t.Errorf("a shard has %d holders, where all have room", all[c])
		}
	}
	if len(few) < number*9/10 { // 72 places, of which chance alone would cover 42
		t.Errorf("%d of %d shards have a holder", len(few), number)
	}
}
