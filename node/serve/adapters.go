package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/web/openai"
)

// The files of an adapter: its tensors, and its rank and scale.
const (
	adapterFile       = "adapter_model.safetensors"
	adapterConfigFile = "adapter_config.json"
)

// StateOf is the state of the adapter in a folder, of all that its answers depend on, or "" if it has no such files.
func StateOf(dir string) string {
	state, _ := stateOf(filepath.Join(dir, adapterConfigFile), filepath.Join(dir, adapterFile))
	return state
}

// shelf keeps the tensors of the adapters that are asked for in memory, as many as there is room for: the one that was
// last used longest ago makes room for another. Its fields need the lock of the engine.
type shelf struct {
	batch *generate.Batch
	base  architecture.Config
	room  int // adapters
	all   []*shelved
	clock uint64
	loads int // from the disk, since the engine was opened
}

// shelved is an adapter.
type shelved struct {
	dir, state string
	reading    sync.Mutex // one reader of the folder at a time
	loaded     bool
	users      int    // texts that are written with it, or wait
	used       uint64 // when it was last asked for
}

// newShelf returns a shelf without tensors, with room for adapters in a number of bytes, at least for one.
func newShelf(b *generate.Batch, base architecture.Config, memory int64) *shelf {
	return &shelf{batch: b, base: base, room: int(max(1, memory/max(1, b.AdapterBytes())))}
}

// hold has an adapter in memory until it is released. The error is openai.ErrBusy if texts are written with all
// adapters for which there is room.
func (e *Engine) hold(number int) (release func(), err error) {
	if number == 0 {
		return func() {}, nil
	}
	a := e.shelf.all[number-1]
	e.mu.Lock()
	a.users++
	e.shelf.clock++
	a.used = e.shelf.clock
	loaded := a.loaded
	e.mu.Unlock()
	release = func() {
		e.mu.Lock()
		a.users--
		e.mu.Unlock()
	}
	if !loaded {
		err = e.load(number, a)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// load reads an adapter from its folder, which must be as it was when the engine was opened. Texts are written
// meanwhile.
func (e *Engine) load(number int, a *shelved) error {
	a.reading.Lock()
	defer a.reading.Unlock()
	e.mu.Lock()
	loaded := a.loaded
	e.mu.Unlock()
	if loaded { // by another request
		return nil
	}
	read, err := folder.ReadAdapter(os.DirFS(a.dir), e.shelf.base)
	if state := StateOf(a.dir); state != a.state { // after it was read: a run may write it meanwhile
		return fmt.Errorf("%w: %s is another adapter than when the server began: start it again", ErrFolder, a.dir)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFolder, a.dir, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.shelf.clear() {
		return openai.ErrBusy
	}
	if err := e.shelf.batch.Load(number, read.Tensors); err != nil {
		return err
	}
	a.loaded = true
	e.shelf.loads++
	return nil
}

// clear makes room for an adapter. It needs the lock of the engine.
func (s *shelf) clear() bool {
	for {
		n, oldest := 0, -1
		for i, a := range s.all {
			if !a.loaded {
				continue
			}
			n++
			if a.users == 0 && (oldest < 0 || a.used < s.all[oldest].used) {
				oldest = i
			}
		}
		if n < s.room {
			return true
		}
		if oldest < 0 {
			return false
		}
		s.batch.Unload(oldest + 1)
		s.all[oldest].loaded = false
	}
}
