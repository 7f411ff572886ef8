package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/source"
)

// cursor is how much of a run a reader has. As the id of an event it survives a restart of the server.
type cursor struct {
	metrics, lineage, samples int
	// beginning of the state root of the last checkpoint: another one means that records were taken back
	root string
}

func (c cursor) String() string {
	return fmt.Sprintf("%d.%d.%d.%s", c.metrics, c.lineage, c.samples, c.root)
}

// parseCursor reads an id; ok is false for what is none.
func parseCursor(text string) (c cursor, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 4 || len(parts[3]) > rootLength {
		return c, false
	}
	for i, n := range []*int{&c.metrics, &c.lineage, &c.samples} {
		v, err := strconv.ParseUint(parts[i], 10, 31)
		if err != nil {
			return cursor{}, false
		}
		*n = int(v)
	}
	c.root = parts[3]
	return c, true
}

const rootLength = 12

// end is the cursor of a reader that has all.
func end(h *source.History) cursor {
	c := cursor{metrics: len(h.Metrics), lineage: len(h.Lineage), samples: len(h.Samples)}
	c.root = rootAt(h, c.lineage)
	return c
}

func rootAt(h *source.History, n int) string {
	if n == 0 {
		return ""
	}
	root := h.Lineage[n-1].StateRoot
	return root[:min(len(root), rootLength)]
}

// holds reports whether the records that a reader has are still the first records of the run.
func (c cursor) holds(h *source.History) bool {
	return c.metrics <= len(h.Metrics) && c.lineage <= len(h.Lineage) && c.samples <= len(h.Samples) &&
		c.root == rootAt(h, c.lineage)
}

// maxNews bounds the metrics in one event. A reader that misses more gets the latest, and asks /metrics for a whole
// picture.
const maxNews = 2000

// since is what a reader lacks.
func since(c cursor, h *source.History) api.Update {
	u := api.Update{Job: h.Job, Metrics: h.Metrics[c.metrics:], Checkpoints: h.Lineage[c.lineage:],
		Samples: h.Samples[c.samples:], Receipts: len(h.Receipts), Disputes: len(h.Disputes)}
	u.Metrics = u.Metrics[max(0, len(u.Metrics)-maxNews):]
	u.Checkpoints = u.Checkpoints[max(0, len(u.Checkpoints)-maxNews):]
	return u
}
