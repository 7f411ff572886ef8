package storage

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/role/bundle"
)

// A large model puts its checkpoints, the ends of audited units and carried states aside, each from a size of its own
// on; a small one nothing. Bytes that the memory has no room for have to be on the disk.
func TestAside(t *testing.T) {
	for name, c := range map[string]struct {
		width, times int64 // times: the parameters
		set          string
	}{
		"small":             {32, 0, "strategy.optimizer_state_rounds=1"},
		"large":             {512, 4*2 + 2*3, "strategy.optimizer_state_rounds=1"},
		"carried":           {640, 4*2 + 2*3 + 2*2*2, "strategy.optimizer_state_rounds=2"},
		"carried in memory": {512, 4*2 + 2*3, "strategy.optimizer_state_rounds=2"},
		"states in memory":  {448, 4 * 2, "strategy.optimizer_state_rounds=1"},
	} {
		j, err := job.Load(jobtest.Small(t).Path, "model.config.n_layer=2", "model.config.n_head=4",
			fmt.Sprint("model.config.n_embd=", c.width), "strategy.workers=2", c.set)
		if err != nil {
			t.Fatal(err)
		}
		b, err := prepare.New(j)
		if err != nil {
			t.Fatal(err)
		}
		o, err := b.LocalOrder()
		if err != nil {
			t.Fatal(err)
		}
		all := c.times * b.Size().Parameters()
		blobs := bundle.Together(b.Spec, b.Step, b.Manifest, o.Terms, 3)
		least := blobs + b.Size().Parameters() // and the model
		if d, err := Here(b, o.Terms, 3, 3); err != nil || d.Blobs != blobs || d.Moved != all || d.All() != least {
			t.Errorf("%s: the memory has room, and %+v have to be on the disk, wanted %d and %d, %v", name, d, least, all, err)
		}
		if d, err := In(b, o.Terms, 3, 3, 0, true); err != nil || d.Aside != all || d.All() != least+all {
			t.Errorf("%s: the memory has no room, and %+v have to be on the disk, %v", name, d, err)
		}
		d := Disk{Member: 9, Blobs: 5, Model: 1, Moved: 4, Aside: 2}
		for room, want := range map[int64]int64{1: 8, 9: 9, 20: 10} {
			if got := d.In(room); got != want {
				t.Errorf("%+v takes %d of %d bytes, want %d", d, got, room, want)
			}
		}
		if d, err := In(b, o.Terms, 3, 3, 0, false); err != nil || d.Aside != 0 {
			t.Errorf("%s: %+v where nothing is known of the memory, %v", name, d, err)
		}
		if all == 0 {
			continue
		}
		_, threads := prepare.Turns(b)
		exec, err := b.Spec.Compile(b.Step, threads)
		if err != nil {
			t.Fatal(err)
		}
		need, err := prepare.Memory(b, exec, 3)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := In(b, o.Terms, 3, 3, need+uint64(all)/4, true); err != nil || d.Aside != all-all/4 {
			t.Errorf("%s: the memory has room for a quarter of %d bytes, and %+v have to be on the disk, %v", name, all, d, err)
		}
	}
}
