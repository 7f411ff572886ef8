package bridged

import (
	"errors"

	dbm "github.com/cosmos/cosmos-db"
)

var errKilled = errors.New("bridged: killed")

// disk is the store of an application on disk, which takes no more writes once the application is killed.
type disk struct {
	dbm.DB
	dead bool
	left int // writes until it is killed; below 0: it is not
}

// write runs a write, unless the application was killed before it.
func (d *disk) write(do func() error) error {
	d.dead = d.dead || d.left == 0
	if d.dead {
		return errKilled
	}
	d.left--
	return do()
}

func (d *disk) Set(k, v []byte) error     { return d.write(func() error { return d.DB.Set(k, v) }) }
func (d *disk) SetSync(k, v []byte) error { return d.write(func() error { return d.DB.SetSync(k, v) }) }
func (d *disk) Delete(k []byte) error     { return d.write(func() error { return d.DB.Delete(k) }) }
func (d *disk) DeleteSync(k []byte) error { return d.write(func() error { return d.DB.DeleteSync(k) }) }
func (d *disk) NewBatch() dbm.Batch       { return batch{d.DB.NewBatch(), d} }
func (d *disk) NewBatchWithSize(n int) dbm.Batch {
	return batch{d.DB.NewBatchWithSize(n), d}
}

// batch is several writes, of which all are made or none.
type batch struct {
	dbm.Batch
	disk *disk
}

func (b batch) Write() error     { return b.disk.write(b.Batch.Write) }
func (b batch) WriteSync() error { return b.disk.write(b.Batch.WriteSync) }
