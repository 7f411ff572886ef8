package prepare

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
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
		b, err := New(j)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := aside(b, 3), c.times*b.Size().Parameters(); got != want {
			t.Errorf("width %d: %d bytes, want %d", c.width, got, want)
		}
		if onDisk, err := AsideOnDisk(b, 3); err != nil || onDisk != 0 {
			t.Errorf("width %d: %d bytes have to be on the disk, %v", c.width, onDisk, err)
		}
	}
}
