package push

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/push/parcel"
	"github.com/starling-network/starling/node/push/record"
)

// Keeper copies the models of the runs below a folder to one store, each below the name of its run. It continues what
// an earlier process has left. The methods of a nil Keeper do nothing.
type Keeper struct {
	o      Options
	target string
	ctx    context.Context
	cancel context.CancelFunc
	under  sync.WaitGroup
}

// NewKeeper continues the copies of the runs below o.Dir. The target has no name of a run at its end.
func NewKeeper(ctx context.Context, o Options, target string) (*Keeper, error) {
	if err := Ready(target + "/run"); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, parcel.OnDisk(err)
	}
	k := &Keeper{o: o, target: target}
	k.ctx, k.cancel = context.WithCancel(ctx)
	for _, e := range entries {
		dir := filepath.Join(o.Dir, e.Name())
		kept, _ := record.Load(dir) // what cannot be read is left as it is
		for _, r := range kept {
			if r.From == "" && r.To == k.target+"/"+e.Name() && (r.State == record.Waiting || r.State == record.Sending) {
				k.Take(dir)
			}
		}
	}
	return k, nil
}

// Take copies the model of a finished run, some time.
func (k *Keeper) Take(dir string) {
	if k == nil {
		return
	}
	k.under.Go(func() {
		if err := k.copy(dir); err != nil && k.o.Say != nil {
			k.o.Say("warning: the model of " + filepath.Base(dir) + " is not copied: " + err.Error())
		}
	})
}

func (k *Keeper) copy(dir string) (err error) {
	unlock, err := folder.Lock(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, folder.ErrInUse) {
		return err
	}
	if err != nil {
		return parcel.OnDisk(err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	name := filepath.Base(dir)
	s, err := Open(Options{Dir: dir, Title: name, Say: k.o.Say, Retry: k.o.Retry})
	if err != nil {
		return err
	}
	if err := s.Add("", k.target+"/"+name); err != nil {
		return err
	}
	s.Start(k.ctx)
	s.Settle(k.ctx, 0)
	s.Close()
	return nil
}

// Close ends what is under way. It continues with the next Keeper of the folder.
func (k *Keeper) Close() {
	if k != nil {
		k.cancel()
		k.under.Wait()
	}
}
