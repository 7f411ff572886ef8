package localnet

import (
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare/storage"
)

// Room is how the parties of a network divide the disk. Blobs that all of them need are one file each, so the disk has
// to have room for them once, and every party may have all of them. The rest of the disk is divided: one part is for
// data that is put aside by any party, and one for the model. The remainder goes in equal parts to each party, for
// blobs that no other has, and to data that is put aside.
type Room struct {
	Member int64          // bytes of blobs of each party
	words  string         // names the disk of which these are a part, for people
	shared *member.Budget // of all that is put aside; nil: each party takes it from its own
}

// Divide divides the disk of an output folder for a job, or gives each party a share of it: a *member.ShortageError
// if there is too little.
func Divide(dir, job string, need storage.Disk, own disk.Share, parties int) (Room, error) {
	if own != (disk.Share{}) {
		r := Room{Member: own.Of(dir, 0), words: own.Words()}
		return r, member.NewDiskBudget(r.Member, r.words).Reserve(job, need.Member)
	}
	all, known := storage.Room(dir)
	if !known {
		all = max(need.Member, need.All()) + need.Model + need.Moved
	}
	r := Room{words: storage.Words, shared: member.NewDiskBudget(all, storage.Words)}
	if err := r.shared.Reserve(job, need.All()); err != nil {
		return r, err
	}
	r.Member = max(need.Member, need.Blobs)
	spare := max(0, all-need.Model-need.Moved-r.Member) / int64(parties+1)
	r.Member += spare
	// the rest is for data that is put aside
	return r, r.shared.Reserve(job, need.Blobs+need.Model+int64(parties)*spare)
}

// Aside is where a party with this folder, store and budget puts bytes aside.
func (r Room) Aside(dir string, store *quota.Store, own *member.Budget) memory.Aside {
	if r.shared == nil {
		return member.AsideIn(dir, store, own)
	}
	return member.AsideOf(dir, r.shared)
}

// reserve asks for the room of data that the consumer puts aside; nil: there is enough.
func (r Room) reserve() func(bytes int64) (free func(), err error) {
	if r.shared == nil {
		return nil
	}
	return member.AsideOf("", r.shared).Reserve
}
