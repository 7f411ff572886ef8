package slice_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/exchange/update"
)

// model has a tensor that is cut often, some that are not, and one that leaves a rest.
var model = [][]int{{3, codec.PartElements}, {64}, {300, 300}, {1}, {codec.PartElements}, {7, 11, 13}}

func shapesOf(dims [][]int) []tensor.Shape {
	out := make([]tensor.Shape, len(dims))
	for i, d := range dims {
		out[i] = tensor.Make(tensor.Float32, d...)
	}
	return out
}

// round is a made-up round: a checkpoint and the updates of its units.
type round struct {
	spec    *train.Spec
	base    *train.Checkpoint
	updates []*update.Update
}

func newRound(t testing.TB, dims [][]int, units int, x train.Exchange) round {
	t.Helper()
	r := round{spec: &train.Spec{Units: uint32(units), Exchange: x}, base: &train.Checkpoint{Round: 3}}
	normal := func(seed, stream int) (list []*tensor.Tensor) {
		for i, s := range shapesOf(dims) {
			n := tensor.New(s)
			philox.NormalTo(n.F32(), uint64(seed), uint64(stream+i))
			list = append(list, n)
		}
		return list
	}
	for i := range dims {
		r.base.Names = append(r.base.Names, fmt.Sprintf("tensor %d", i))
	}
	if x.Outer == "" {
		x.Outer = outer.SGD
	}
	r.spec.Exchange = x
	o, err := outer.NewOptimizer(x)
	if err != nil {
		t.Fatal(err)
	}
	r.base.Params = normal(1, 0)
	for k := range o.State() {
		list := normal(1, 100*(1+k))
		for _, s := range list {
			for i, v := range s.F32() {
				s.F32()[i] = v * v // no second moment is negative
			}
		}
		r.base.Outer = append(r.base.Outer, list)
	}
	for u := range units {
		packed, err := update.Pack(x.Codec, r.base.Round, uint32(u), normal(2+u, 0))
		if err != nil {
			t.Fatal(err)
		}
		r.updates = append(r.updates, packed)
	}
	return r
}

// whole is the next checkpoint as everybody computes it who has all updates.
func (r round) whole(t testing.TB) *train.Checkpoint {
	t.Helper()
	deltas := make([][]*tensor.Tensor, len(r.updates))
	for i, u := range r.updates {
		var err error
		if deltas[i], err = outer.Unpack(r.spec, r.base, r.base.Round, uint32(i), u.Root(), u.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	next, err := outer.Advance(r.spec, r.base, deltas)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// inSlices is the next checkpoint as it comes out of slices.
func (r round) inSlices(t testing.TB, p *slice.Plan) *train.Checkpoint {
	t.Helper()
	pieces := make([][][]byte, len(r.updates))
	for i, u := range r.updates {
		var err error
		if pieces[i], err = p.Cut(u); err != nil {
			t.Fatal(err)
		}
	}
	parts := make([][]byte, p.Len())
	for k := range parts {
		deltas := make([][]*tensor.Tensor, len(pieces))
		for i := range pieces {
			var err error
			want := slice.Expect{Round: r.base.Round, Unit: uint32(i), Slice: k, Root: r.updates[i].Root()}
			if deltas[i], err = p.Open(pieces[i][k], want); err != nil {
				t.Fatal(err)
			}
		}
		sub, err := outer.Advance(r.spec, p.Base(r.base, k), deltas)
		if err != nil {
			t.Fatal(err)
		}
		parts[k] = p.EncodePart(sub, k)
	}
	next, err := join(p, r.base, parts)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func join(p *slice.Plan, base *train.Checkpoint, parts [][]byte) (*train.Checkpoint, error) {
	j := p.Join(base)
	for k, b := range parts {
		if err := j.Add(k, b); err != nil {
			return nil, err
		}
	}
	return j.Checkpoint, nil
}

// Combining in slices gives the state root of combining whole updates, for every rule that may be used and every codec.
func TestSlicesGiveTheSameCheckpoint(t *testing.T) {
	for _, x := range []train.Exchange{
		{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9},
		{Codec: codec.Float32, Rule: aggregate.Median, Outer: outer.SGD, Rate: 0.5},
		{Codec: codec.E3M0, Rule: aggregate.TrimmedMean, Trim: 0.2, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9},
		{Codec: codec.TopKName(82, 8), Rule: aggregate.Contributors, Outer: outer.SGD, Rate: 1},
		{Codec: codec.Cosine, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9},
		{Codec: codec.BFloat16, Rule: aggregate.Mean, Outer: outer.Adam, Rate: 0.01, Momentum: 0.9, Decay: 0.99, Eps: 1e-3},
	} {
		r := newRound(t, model, 5, x)
		want := r.whole(t).Root()
		most, err := slice.Most(x.Codec, shapesOf(model))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 2, 3, most} {
			p, err := slice.NewPlan(x.Codec, shapesOf(model), n)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.inSlices(t, p).Root(); got != want {
				t.Errorf("%s, %s in %d slices: %s, want %s", x.Codec, x.Rule, n, got.Short(), want.Short())
			}
		}
	}
}

// A plan has every element once, and no slice is empty or much larger than its share.
func TestPlan(t *testing.T) {
	for _, dims := range [][][]int{model, {{3}}, {{1}, {1}, {codec.PartElements * 40}, {2}},
		{{10, codec.PartElements}, {10, codec.PartElements}}} {
		shapes := shapesOf(dims)
		total := 0
		for _, s := range shapes {
			total += s.Elements()
		}
		most, err := slice.Most(codec.Int8, shapes)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= most; n++ {
			p, err := slice.NewPlan(codec.Int8, shapes, n)
			if err != nil || p.Len() != n {
				t.Fatalf("%d slices: %v, %v", n, p, err)
			}
			at, place := 0, 0
			for k := range n {
				size := 0
				for _, r := range p.Ranges(k) {
					if r.Parameter != at {
						at, place = at+1, 0
					}
					if r.Parameter != at || r.Lo != place || r.Hi <= r.Lo {
						t.Fatalf("%v of %d slices: %v after element %d of %d", dims, n, r, place, at)
					}
					place = r.Hi
					size += r.Hi - r.Lo
				}
				if size == 0 || size > total/n+2*codec.PartElements {
					t.Errorf("%v: slice %d of %d has %d elements of %d", dims, k, n, size, total)
				}
			}
			if at != len(shapes)-1 || place != shapes[at].Elements() {
				t.Errorf("%v: %d slices end at element %d of %d", dims, n, place, at)
			}
		}
		for _, n := range []int{0, -1, most + 1} {
			if _, err := slice.NewPlan(codec.Int8, shapes, n); !errors.Is(err, slice.ErrMany) {
				t.Errorf("%d slices of at most %d: %v", n, most, err)
			}
		}
	}
	if _, err := slice.NewPlan("none", shapesOf(model), 2); err == nil {
		t.Error("a codec that is not known")
	}
}

func TestRulesThatLookAtWholeUpdates(t *testing.T) {
	for rule, ok := range map[string]bool{
		aggregate.Mean: true, aggregate.TrimmedMean: true, aggregate.Median: true, aggregate.Krum: false,
		aggregate.MultiKrum:       false,
		aggregate.GeometricMedian: false, aggregate.CenteredClip: false, aggregate.ClippedMean: false, "none": false,
	} {
		if err := slice.Check(train.Exchange{Rule: rule}); errors.Is(err, slice.ErrRule) == ok {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestForgedPieces(t *testing.T) {
	r := newRound(t, model, 2, train.Exchange{Codec: codec.Int8})
	p, err := slice.NewPlan(codec.Int8, shapesOf(model), 4)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := p.Cut(r.updates[0])
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := p.Cut(r.updates[1])
	if err != nil {
		t.Fatal(err)
	}
	want := slice.Expect{Round: 3, Unit: 0, Slice: 1, Root: r.updates[0].Root()}
	if _, err := p.Open(mine[1], want); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, b []byte, want slice.Expect) {
		t.Helper()
		if _, err := p.Open(b, want); !errors.Is(err, slice.ErrPiece) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another slice", mine[2], want)
	refused("another unit", theirs[1], want)
	refused("of another round", mine[1], slice.Expect{Round: 4, Slice: 1, Root: want.Root})
	refused("of another update", mine[1], slice.Expect{Round: 3, Slice: 1, Root: r.updates[1].Root()})
	refused("nothing", nil, want)
	refused("a byte less", mine[1][:len(mine[1])-1], want)
	for at := 0; at < len(mine[1]); at += 997 {
		b := slices.Clone(mine[1])
		b[at] ^= 0x10
		refused(fmt.Sprint("another byte ", at), b, want)
	}
}

func TestForgedParts(t *testing.T) {
	r := newRound(t, [][]int{{3}, {4, 5}, {2}}, 1, train.Exchange{Codec: codec.Float32})
	p, err := slice.NewPlan(codec.Float32, shapesOf([][]int{{3}, {4, 5}, {2}}), 2)
	if err != nil {
		t.Fatal(err)
	}
	good := func() [][]byte {
		next := *r.base
		next.Round++
		return [][]byte{p.EncodePart(p.Base(&next, 0), 0), p.EncodePart(p.Base(&next, 1), 1)}
	}
	if joined, err := join(p, r.base, good()); err != nil || joined.Round != 4 ||
		!slices.Equal(joined.Params[1].F32(), r.base.Params[1].F32()) {
		t.Fatalf("%+v, %v", joined, err)
	}
	for name, spoil := range map[string]func([][]byte) [][]byte{
		"exchanged":     func(x [][]byte) [][]byte { return [][]byte{x[1], x[0]} },
		"nothing":       func(x [][]byte) [][]byte { return [][]byte{x[0], nil} },
		"a byte less":   func(x [][]byte) [][]byte { return [][]byte{x[0], x[1][1:]} },
		"of this round": func(x [][]byte) [][]byte { return [][]byte{x[0], p.EncodePart(p.Base(r.base, 1), 1)} },
	} {
		if _, err := join(p, r.base, spoil(good())); !errors.Is(err, slice.ErrPart) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzSlices reads a stranger's pieces and parts: whatever is taken is what was committed to.
func FuzzSlices(f *testing.F) {
	dims := [][]int{{9}, {40, 30}, {codec.PartElements + 3}}
	r := newRound(f, dims, 1, train.Exchange{Codec: codec.Int8})
	p, err := slice.NewPlan(codec.Int8, shapesOf(dims), 3)
	if err != nil {
		f.Fatal(err)
	}
	pieces, err := p.Cut(r.updates[0])
	if err != nil {
		f.Fatal(err)
	}
	next := *r.base
	next.Round++
	var parts [][]byte
	for k, b := range pieces {
		parts = append(parts, p.EncodePart(p.Base(&next, k), k))
		f.Add(b, uint8(k))
		f.Add(parts[k], uint8(k))
	}
	f.Fuzz(func(t *testing.T, b []byte, k uint8) {
		i := int(k) % p.Len()
		if _, err := p.Open(b, slice.Expect{Round: 3, Slice: i, Root: r.updates[0].Root()}); err == nil &&
			!slices.Equal(b, pieces[i]) {
			t.Error("a piece that is not the committed one is taken")
		} else if err != nil && !errors.Is(err, slice.ErrPiece) {
			t.Error(err)
		}
		all := slices.Clone(parts)
		all[i] = b
		if _, err := join(p, r.base, all); err != nil && !errors.Is(err, slice.ErrPart) {
			t.Error(err)
		}
	})
}
