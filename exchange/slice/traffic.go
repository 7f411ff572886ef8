package slice

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/update"
)

// Traffic is how many bytes a worker receives in a round, on average over the workers and without what it has itself.
type Traffic struct {
	Updates    int64 // whole ones; or, in slices, the pieces of those that it reduces
	Index      int64 // which blobs the pieces are
	Checkpoint int64 // the slices of the next one
}

// Total is the sum.
func (t Traffic) Total() int64 { return t.Updates + t.Index + t.Checkpoint }

// indexed is the size of the entry of a piece in the index of an update: a CID and its head.
const indexed = 38

// provenBytes is the size of parameters above which TrafficOf leaves out what proves pieces and parts, which is less
// than a hundredth of them then.
const provenBytes = 64 << 20

// TrafficOf returns the traffic of rounds of one unit for each worker, reduced in n slices by two workers each, or with
// n 0 by every worker for itself. It is made of the sizes of encoded updates, pieces and parts, which follow from the
// shapes alone; the outer optimizer has one tensor of state for each.
func TrafficOf(name string, shapes []tensor.Shape, workers, n int) (Traffic, error) {
	c, ok := codec.ByName(name)
	if !ok {
		return Traffic{}, fmt.Errorf("slice: no codec %q", name)
	}
	var sizes []int
	var params, payloads int64
	for _, s := range shapes {
		size := codec.Size(c, s)
		sizes = append(sizes, size)
		params, payloads = params+int64(s.Bytes()), payloads+int64(size)
	}
	others := int64(workers - 1)
	if n == 0 {
		return Traffic{Updates: others * (payloads + int64(update.Overhead(name, sizes)))}, nil
	}
	t, err := Traffic{Updates: payloads, Checkpoint: 2 * params}, error(nil)
	if params <= provenBytes {
		t, err = proven(name, shapes, sizes, n)
	}
	// two reducers, each fetches of all but itself
	share := func(bytes int64) int64 { return bytes * 2 * others / int64(workers) }
	t.Updates, t.Index = share(t.Updates), share(int64(n*n*indexed))
	t.Checkpoint -= t.Checkpoint * 2 / int64(workers) // two have computed each part
	return t, err
}

// proven is the size of all pieces of an update with payloads of these sizes, and of all parts of a checkpoint.
func proven(name string, shapes []tensor.Shape, sizes []int, n int) (t Traffic, err error) {
	base := &train.Checkpoint{Names: make([]string, len(shapes))}
	u := &update.Update{Codec: name}
	for i, s := range shapes {
		base.Params = append(base.Params, tensor.New(s))
		u.Payloads = append(u.Payloads, make([]byte, sizes[i]))
	}
	base.Outer = train.Zeros(base.Params, 1)
	p, err := NewPlan(name, shapes, n)
	if err != nil {
		return t, err
	}
	pieces, err := p.Cut(u)
	if err != nil {
		return t, err
	}
	for k, b := range pieces {
		t.Updates += int64(len(b))
		t.Checkpoint += int64(len(p.EncodePart(p.Base(base, k), k)))
	}
	return t, nil
}
