package patch

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

func roots(list []*tensor.Tensor) canon.Digest {
	digests := make([]canon.Digest, len(list))
	for i, t := range list {
		digests[i] = t.Root()
	}
	return canon.NewTree(digests).Root()
}

func version(round uint32, list []*tensor.Tensor) Version {
	return Version{Name{round, roots(list)}, list}
}

// weights are those of a small model; a tensor has more elements than a group.
func weights(seed uint64) []*tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []*tensor.Tensor
	for _, n := range []int{1, 3000, 2*groupElements + 77, groupElements} {
		t := tensor.New(tensor.Make(tensor.Float32, n))
		for i := range t.F32() {
			t.F32()[i] = float32(r.NormFloat64() * 0.02)
		}
		out = append(out, t)
	}
	return out
}

// stepped moves a share of the elements by steps of a rate.
func stepped(list []*tensor.Tensor, seed uint64, share, rate float64) []*tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make([]*tensor.Tensor, len(list))
	for i, t := range list {
		out[i] = t.Clone()
		for k := range out[i].F32() {
			if r.Float64() < share {
				out[i].F32()[k] += float32(r.NormFloat64() * rate)
			}
		}
	}
	return out
}

func makePatch(t testing.TB, from, to Version) (*Head, [][]byte) {
	t.Helper()
	var pieces [][]byte
	h, err := Make(from, to, func(p []byte) error { pieces = append(pieces, p); return nil })
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(h.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return got, pieces
}

func from(pieces [][]byte) func(int) ([]byte, error) {
	return func(i int) ([]byte, error) { return pieces[i], nil }
}

// A patch leads to the bits of the version after, whatever changed.
func TestPatchIsLossless(t *testing.T) {
	first := weights(1)
	odd := stepped(first, 7, 0, 0)
	odd[0].F32()[0] = float32(math.Inf(-1))
	odd[1].F32()[0], odd[1].F32()[1] = float32(math.NaN()), float32(math.Copysign(0, -1))
	odd[2].F32()[groupElements] = math.MaxFloat32
	for name, to := range map[string][]*tensor.Tensor{
		"nothing":    stepped(first, 1, 0, 0),
		"few":        stepped(first, 2, 0.001, 1e-3),
		"some":       stepped(first, 3, 0.3, 1e-6),
		"all":        stepped(first, 4, 1, 1e-6),
		"all by far": weights(5),
		"odd":        odd,
	} {
		for form, narrow := range map[string]bool{"float32": false, "bfloat16": true} {
			a, b := first, to
			if narrow {
				a, b = Narrow(first), Narrow(to)
			}
			before, after := version(1, a), version(2, b)
			h, pieces := makePatch(t, before, after)
			got, err := h.Apply(before, from(pieces), nil)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, form, err)
			}
			if roots(got) != after.Name.Root {
				t.Errorf("%s, %s: another root", name, form)
			}
			again, second := makePatch(t, before, after)
			if !slices.Equal(again.Encode(), h.Encode()) || len(second) != len(pieces) {
				t.Errorf("%s, %s: the same patch has other bytes", name, form)
			}
		}
	}
}

// TestChain applies a hundred patches in a row.
func TestChain(t *testing.T) {
	list := []*tensor.Tensor{weights(1)[1]}
	held := version(0, list)
	for round := range uint32(100) {
		list = stepped(list, uint64(round), 0.2, 1e-5)
		to := version(round+1, list)
		h, pieces := makePatch(t, version(round, held.Tensors), to)
		got, err := h.Apply(Version{Name{round, held.Name.Root}, held.Tensors}, from(pieces), nil)
		if err != nil {
			t.Fatal(err)
		}
		if held = version(round+1, got); held.Name.Root != to.Name.Root {
			t.Fatalf("round %d: another root", round)
		}
	}
}

// TestBytes holds the bytes of a patch: two members must make the same.
func TestBytes(t *testing.T) {
	a := weights(1)
	h, _ := makePatch(t, version(1, a), version(2, stepped(a, 3, 0.3, 1e-6)))
	const want = "55a13fe3779c36c227026284c8684a9fbcd00458e8e37e698ea8c97f1da8e21d"
	if got := canon.Sum("test", h.Encode()).String(); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// TestRefuses applies patches that were changed.
func TestRefuses(t *testing.T) {
	a := weights(1)
	before, after := version(1, a), version(2, stepped(a, 4, 1, 1e-3))
	h, pieces := makePatch(t, before, after)
	big := tensor.New(tensor.Make(tensor.Float32, 1<<20)) // two pieces or more
	for i := range big.F32() {
		big.F32()[i] = float32(i)
	}
	two := version(3, []*tensor.Tensor{big})
	long, parts := makePatch(t, two, version(4, stepped(two.Tensors, 9, 1, 1)))
	if len(parts) < 2 {
		t.Fatalf("%d pieces", len(parts))
	}
	flip := slices.Clone(pieces[0])
	flip[len(flip)/2] ^= 1
	swapped := *long
	swapped.Pieces = slices.Clone(long.Pieces)
	swapped.Pieces[0], swapped.Pieces[1] = swapped.Pieces[1], swapped.Pieces[0]
	fewer := *long
	fewer.Pieces = long.Pieces[:1]
	for name, c := range map[string]struct {
		head   *Head
		before Version
		pieces [][]byte
		want   error
	}{
		"a changed byte":           {h, before, [][]byte{flip}, ErrPiece},
		"a piece that is cut off":  {h, before, [][]byte{pieces[0][:len(pieces[0])-1]}, ErrPiece},
		"pieces in another order":  {long, two, [][]byte{parts[1], parts[0]}, ErrPiece},
		"a head in another order":  {&swapped, two, [][]byte{parts[1], parts[0]}, ErrPiece},
		"fewer pieces":             {&fewer, two, parts, ErrPiece},
		"another version":          {h, Version{Name{1, canon.Digest{1}}, a}, pieces, ErrVersion},
		"weights of another model": {h, Version{h.From, two.Tensors}, pieces, ErrVersion},
	} {
		if len(c.pieces) < len(c.head.Pieces) {
			c.pieces = append(slices.Clone(c.pieces), pieces[len(c.pieces):]...)
		}
		if _, err := c.head.Apply(c.before, from(c.pieces), nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Make(before, two, func([]byte) error { return nil }); !errors.Is(err, ErrWeights) {
		t.Errorf("of two models: %v", err)
	}
	for name, bad := range map[string]*Head{
		"no pieces":      {Format: format},
		"another format": {Format: 2, Pieces: h.Pieces},
		"a large piece":  {Format: format, Pieces: []Piece{{Bytes: MaxPieceBytes + 1}}},
		"an empty piece": {Format: format, Pieces: []Piece{{}}},
	} {
		if _, err := Decode(bad.Encode()); !errors.Is(err, ErrHead) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzContent reads the unpacked content of pieces of strangers.
func FuzzContent(f *testing.F) {
	for _, share := range []float64{0, 0.01, 1} {
		for _, list := range [][]*tensor.Tensor{weights(1), Narrow(weights(1))} {
			w := &writer{flush: func(raw []byte) error { f.Add(slices.Clone(raw)); return nil }}
			to := stepped(list, 3, share, 1e-4)
			if err := errors.Join(w.tensor(list[1].F32(), to[1].F32()), w.end()); err != nil {
				f.Fatal(err)
			}
		}
	}
	a := weights(1)[1].F32()
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := &reader{next: func(int) ([]byte, error) { return raw, nil }, pieces: 1}
		b := make([]float32, len(a))
		if err := r.tensor(a, b); err != nil && !errors.Is(err, ErrPiece) {
			t.Fatal(err)
		}
	})
}

// FuzzDecode reads heads of strangers.
func FuzzDecode(f *testing.F) {
	a := weights(1)
	h, _ := makePatch(f, version(1, a), version(2, stepped(a, 1, 0.1, 1e-3)))
	f.Add(h.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := Decode(data); err == nil && !slices.Equal(h.Encode(), data) {
			t.Fatalf("%+v has other bytes", h)
		}
	})
}
