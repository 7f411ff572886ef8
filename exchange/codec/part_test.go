package codec

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// made runs all parts of a payload, and checks what Making says of them.
func made(t testing.TB, m PartialEncoder, x *tensor.Tensor) []byte {
	t.Helper()
	var payload, state []byte
	leaves := 0
	for part := range m.Parts() {
		lo, hi := m.Elements(part)
		if lo < 0 || hi > x.Shape.Elements() || lo > hi || m.Parts() > 1 && hi-lo > PartElements || m.Leaves(part) != leaves {
			t.Fatalf("part %d of %d: elements %d to %d, %d leaves before, made %d", part, m.Parts(), lo, hi, m.Leaves(part),
				leaves)
		}
		if _, _, err := m.Make(part, append(slices.Clone(state), 0), x.F32()[lo:hi]); !errors.Is(err, ErrState) {
			t.Fatalf("part %d: a state that is too long: %v", part, err)
		}
		done, next, err := m.Make(part, state, x.F32()[lo:hi])
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range done {
			payload = append(payload, l...)
		}
		leaves, state = leaves+len(done), next
	}
	if len(state) > 0 {
		t.Fatalf("%d bytes are left over", len(state))
	}
	return payload
}

// names are those of codecs with which a job may be made, and of Cosine, which is made in one part.
var names = []string{Int8, Float32, Float16, BFloat16, E3M0, Sign, Sparse, Cosine, TopKName(82, 8), TopKName(64, 1),
	TopKName(1, 2), TopKName(41, 16), TopKName(7, 32),
	RandomName(RandomK{Every: 32, Bits: 16, Seed: 5, Stream: 3, Round: 7})}

func TestPartsMakeThePayload(t *testing.T) {
	for _, name := range names {
		for _, n := range []int{1, 300, 5000, PartElements, PartElements + 1, 3*PartElements - 1024, 3*PartElements - 1023,
			200_001} {
			x := tensor.New(tensor.Make(tensor.Float32, n))
			philox.NormalTo(x.F32(), 3, uint64(n))
			m, err := MakingOf(name, x.Shape)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Encode(name, x)
			if err != nil {
				t.Fatal(err)
			}
			if got := made(t, m, x); !bytes.Equal(got, want) {
				t.Errorf("%s of %d elements in %d parts: another payload", name, n, m.Parts())
			}
			if name != Cosine && n > PartElements && m.Parts() < n/PartElements || name == Int8 && n > PartElements &&
				m.Parts() < 4*(n/PartElements) {
				t.Errorf("%s of %d elements is made in %d parts", name, n, m.Parts())
			}
		}
	}
}

func TestPartsRefuseWhatCompressRefuses(t *testing.T) {
	shape := tensor.Make(tensor.Float32, 2*PartElements)
	m, err := MakingOf(Int8, shape)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, PartElements)
	x[77] = float32(math.Inf(1))
	if _, _, err := m.Make(0, nil, x); !errors.Is(err, ErrPayload) {
		t.Errorf("an infinity: %v", err)
	}
	if _, err := MakingOf("zip", shape); err == nil {
		t.Error("an unknown codec")
	}
}

// No state whatever breaks a part.
func FuzzMake(f *testing.F) {
	f.Add(uint8(0), uint16(0), []byte{})
	f.Add(uint8(3), uint16(6), make([]byte, 16+4*levels))
	f.Add(uint8(8), uint16(6), make([]byte, 16+4*levels+492))
	shape := tensor.Make(tensor.Float32, 2*PartElements+5)
	x := make([]float32, PartElements)
	philox.NormalTo(x, 1, 1)
	f.Fuzz(func(t *testing.T, name uint8, part uint16, state []byte) {
		m, err := MakingOf(names[int(name)%len(names)], shape)
		if err != nil || m.Parts() == 1 {
			return
		}
		p := int(part) % m.Parts()
		lo, hi := m.Elements(p)
		if _, _, err := m.Make(p, state, x[:hi-lo]); err != nil && !errors.Is(err, ErrState) {
			t.Fatal(err)
		}
	})
}
