package storage

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/role/bundle"
)

// A large model puts its checkpoints, and the state of each party, aside; a small one nothing.
func TestAside(t *testing.T) {
	for _, c := range []struct {
		width, times int64 // times: the parameters
	}{{32, 0}, {512, 3*2 + 3*3}} {
		j, err := job.Load(jobtest.Small(t).Path, "model.config.n_layer=2", "model.config.n_head=4",
			fmt.Sprint("model.config.n_embd=", c.width))
		if err != nil {
			t.Fatal(err)
		}
		b, err := prepare.New(j)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := aside(b, 3), c.times*b.Size().Parameters(); got != want {
			t.Errorf("width %d: %d bytes, want %d", c.width, got, want)
		}
		o, err := b.LocalOrder()
		if err != nil {
			t.Fatal(err)
		}
		blobs := bundle.Footprint(b.Spec, b.Step, b.Manifest, o.Terms, 3)
		if d, err := Here(b, o.Terms, 3, 3); err != nil || d != (Disk{Blobs: blobs}) {
			t.Errorf("width %d: the memory has room, and %+v have to be on the disk, %v", c.width, d, err)
		}
		least, err := In(b, o.Terms, 3, 3, 0, true)
		if want := c.times * b.Size().Parameters() / 3; err != nil || least.Aside != want || least.All() != blobs+want {
			t.Errorf("width %d: the memory has no room, and %+v have to be on the disk, %v", c.width, least, err)
		}
		if d, err := In(b, o.Terms, 3, 3, 0, false); err != nil || d.Aside != 0 {
			t.Errorf("width %d: %+v where nothing is known of the memory, %v", c.width, d, err)
		}
	}
}
