package audit

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
)

// held is a state of tensors of the given tiles.
type held struct {
	step    uint32
	tensors [][][]byte
}

func (h held) trees() (trees []*canon.Tree) {
	for _, tiles := range h.tensors {
		trees = append(trees, canon.NewTree(canon.Leaves(tiles)))
	}
	return trees
}

func (h held) Roots() (roots []canon.Digest) {
	for i, t := range h.trees() {
		root, _ := plain{}.Tensor(h.Shape(i), t.Len(), t.Root())
		roots = append(roots, root)
	}
	return roots
}

func (h held) Shape(i int) []byte   { return numbers(uint32(len(h.tensors[i]))) }
func (h held) Tile(i, j int) []byte { return h.tensors[i][j] }
func (h held) Step() uint32         { return h.step }
func (h held) root() canon.Digest   { return plain{}.State(h.step, canon.NewTree(h.Roots()).Root()) }

// plain is a rooting in which a shape is the number of tiles.
type plain struct{}

func (plain) Tensor(shape []byte, tiles int, tree canon.Digest) (canon.Digest, error) {
	if !slices.Equal(shape, numbers(uint32(tiles))) {
		return canon.Digest{}, errors.New("another shape")
	}
	return canon.Sum("test/tensor", shape, tree[:]), nil
}

func (plain) State(step uint32, tensors canon.Digest) canon.Digest {
	return canon.Sum("test/state", numbers(step), tensors[:])
}

func state(tiles ...int) held {
	h := held{step: 7}
	for i, n := range tiles {
		var t [][]byte
		for j := range n {
			t = append(t, fmt.Appendf(nil, "tile %d of tensor %d", j, i))
		}
		h.tensors = append(h.tensors, t)
	}
	return h
}

var vic = Subject{Verifier: "vic", Job: "job", Round: 1, Unit: 2, Attempt: 3}

func TestSealOpensEverywhere(t *testing.T) {
	for _, h := range []held{state(1), state(3, 1, 40), state(300), state(slices.Repeat([]int{1}, 20)...)} {
		seal := NewSeal(vic, h.trees())
		at := map[string]bool{}
		for k := range 40 {
			question := Question(canon.Sum("beacon", []byte{byte(k)}), vic)
			o, err := seal.Open(question, h)
			if err != nil {
				t.Fatal(err)
			}
			again, err := DecodeOpening(o.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Check(vic, h.root(), seal.Root(), question, plain{}); err != nil {
				t.Fatalf("%d tensors: %v", len(h.tensors), err)
			}
			at[string(o.Tile)] = true
		}
		if total := len(slices.Concat(h.tensors...)); len(at) < min(total, 10) {
			t.Errorf("of %d tiles only %d are ever asked for", total, len(at))
		}
	}
}

// An opening is refused whatever part of it is missing or changed.
func TestForgedOpeningsAreRefused(t *testing.T) {
	h, question := state(5, 33, 2), Question(canon.Sum("beacon"), vic)
	seal := NewSeal(vic, h.trees())
	good := func() Opening {
		o, err := seal.Open(question, h)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	other := vic
	other.Verifier = "wim"
	copied := NewSeal(other, h.trees())
	blank := state(5, 33, 2)
	for i := range blank.tensors {
		for j := range blank.tensors[i] {
			blank.tensors[i][j] = []byte("made up")
		}
	}
	invented, err := NewSeal(vic, blank.trees()).Open(question, blank)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := seal.Open(Question(canon.Sum("another beacon"), vic), h)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		opening Opening
		seal    canon.Digest
	}{
		"another verifier's seal":   {good(), copied.Root()},
		"a seal of nothing":         {good(), canon.Sum("rubber stamp")},
		"a state that was made up":  {invented, NewSeal(vic, blank.trees()).Root()},
		"a tile of its own choice":  {elsewhere, seal.Root()},
		"the worker's root as seal": {good(), h.root()},
		"nothing":                   {Opening{}, seal.Root()},
	} {
		if err := c.opening.Check(vic, h.root(), c.seal, question, plain{}); !errors.Is(err, ErrOpening) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(o *Opening){
		"tile":    func(o *Opening) { o.Tile = append(slices.Clone(o.Tile), 0) },
		"step":    func(o *Opening) { o.Step++ },
		"tensors": func(o *Opening) { o.Tensors = 1 },
		"tiles":   func(o *Opening) { o.Tiles = 1 },
		"no tile": func(o *Opening) { o.Tiles, o.Tile, o.Tensor, o.Keyed = 0, nil, nil, nil },
		"shape":   func(o *Opening) { o.Shape = nil },
		"tensor":  func(o *Opening) { o.Tensor = o.Tensor[:len(o.Tensor)-1] },
		"state":   func(o *Opening) { o.State[0][0][0] ^= 1 },
		"keyed":   func(o *Opening) { o.Keyed = o.Tensor },
		"seal":    func(o *Opening) { o.Seal = o.State },
	} {
		o := good()
		change(&o)
		if err := o.Check(vic, h.root(), seal.Root(), question, plain{}); !errors.Is(err, ErrOpening) {
			t.Errorf("changed %s: %v", name, err)
		}
	}
	if err := good().Check(other, h.root(), seal.Root(), question, plain{}); !errors.Is(err, ErrOpening) {
		t.Errorf("another verifier opens the seal: %v", err)
	}
}

func TestSealBindsItsSubject(t *testing.T) {
	trees := state(2, 3).trees()
	seen := map[canon.Digest]Subject{}
	for _, s := range []Subject{vic, {"v", "job", 1, 2, 3, 0}, {"vic", "job2", 1, 2, 3, 0}, {"vic", "job", 2, 2, 3, 0},
		{"vic", "job", 1, 3, 3, 0}, {"vic", "job", 1, 2, 4, 0}, {"vic", "job", 1, 2, 3, 1}} {
		root := NewSeal(s, trees).Root()
		if other, ok := seen[root]; ok {
			t.Errorf("%v and %v have one seal", s, other)
		}
		seen[root] = s
	}
}

// A seal is checked against the root of the state at the end of the executed segment.
func TestEndOfAnAudit(t *testing.T) {
	roots := []canon.Digest{canon.Sum("start"), canon.Sum("one"), canon.Sum("two")}
	for segment, want := range map[uint32]canon.Digest{0: roots[2], 1: roots[1], 2: roots[2], 3: roots[2]} {
		if got := (Subject{Segment: segment}).End(roots); got != want {
			t.Errorf("segment %d: %v, want %v", segment, got, want)
		}
	}
}

func TestLargestOpeningFits(t *testing.T) {
	full := func(height int) canon.Proof {
		p := make(canon.Proof, height)
		for l := range p {
			p[l] = make([]canon.Digest, canon.Fanout-1)
		}
		return p
	}
	const height = 5 // a million tiles a tensor, a million tensors
	o := Opening{Step: 1 << 31, Tensors: canon.MaxElements, Tiles: canon.MaxElements, Shape: make([]byte, 256),
		Tile:   make([]byte, 4096),
		Tensor: full(height), State: full(height), Keyed: full(height), Seal: full(height)}
	if n := len(o.Encode()); n > MaxOpening {
		t.Errorf("%d bytes, the bound is %d", n, MaxOpening)
	}
	if _, err := DecodeOpening(make([]byte, MaxOpening+1)); !errors.Is(err, ErrOpening) {
		t.Errorf("%v", err)
	}
}

func FuzzOpening(f *testing.F) {
	h, question := state(5, 33, 2), Question(canon.Sum("beacon"), vic)
	seal := NewSeal(vic, h.trees())
	o, err := seal.Open(question, h)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(o.Encode())
	f.Add(Opening{}.Encode())
	f.Add([]byte("\xa1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeOpening(b)
		if err != nil {
			if !errors.Is(err, ErrOpening) {
				t.Fatal(err)
			}
			return
		}
		if string(got.Encode()) != string(b) {
			t.Fatal("another encoding")
		}
		if got.Check(vic, h.root(), seal.Root(), question, plain{}) == nil && string(b) != string(o.Encode()) {
			t.Fatalf("a second opening: %x", b)
		}
	})
}
