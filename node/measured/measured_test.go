package measured

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/unitlog"
	"github.com/starling-network/starling/protocol/run/progress"
)

// The norm of a step is the mean over the units that report one. A unit without a norm, or with NaN or infinity, does
// not count, and a worker that cannot be reached delays nothing.
func TestMeanLogs(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	logs := map[string][]byte{
		"a": unitlog.Encode(4, 0, []float32{4, 2}, []float32{1, inf}),
		"b": unitlog.Encode(4, 1, []float32{2, 1}, nil),
		"c": unitlog.Encode(4, 2, []float32{3, 3}, []float32{3, nan}),
		"d": unitlog.Encode(4, 9, []float32{9, 9}, []float32{9, 9}), // of another unit
	}
	entry := progress.Entry{Logs: []string{"a", "b", "c", "d", "e"}}
	entry.Attestation.Checkpoint.Round = 5
	get := func(cid string) ([]byte, error) {
		if b, ok := logs[cid]; ok {
			return b, nil
		}
		return nil, errors.New("gone")
	}
	var missing []int
	h := MeanLogs(&train.Spec{Steps: 2, Segment: 2}, entry, get,
		func(unit int, _ error) { missing = append(missing, unit) })
	if !slices.Equal(h.losses, []float64{3, 2}) || len(h.norms) != 2 || h.norms[0] != 2 || !math.IsNaN(h.norms[1]) ||
		!slices.Equal(missing, []int{3, 4}) {
		t.Errorf("%+v without %v", h, missing)
	}
	if m := meanOf(h.norms...); m == nil || *m != 2 || meanOf(math.NaN()) != nil || meanOf() != nil {
		t.Errorf("the mean of %v is %v", h.norms, m)
	}
	entry.Logs = entry.Logs[3:]
	if h := MeanLogs(&train.Spec{Steps: 2, Segment: 2}, entry, get, func(int, error) {}); h.losses != nil ||
		h.norms != nil {
		t.Errorf("of no log: %+v", h)
	}
}
