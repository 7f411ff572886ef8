package update

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
)

func normal(seed uint64, n int) *tensor.Tensor {
	t := tensor.New(tensor.Make(tensor.Float32, n))
	philox.NormalTo(t.F32(), seed, 0)
	return t
}

func packed(t testing.TB) (*Update, Expect) {
	delta := []*tensor.Tensor{normal(1, 1000), normal(2, 10)}
	u, err := Pack(codec.Int8, 3, 1, delta)
	if err != nil {
		t.Fatal(err)
	}
	return u, Expect{Round: 3, Unit: 1, PackOptions: PackOptions{Name: codec.Int8},
		Shapes: []tensor.Shape{delta[0].Shape, delta[1].Shape}, Root: u.Root()}
}

func TestUnpackRefusesWhatWasNotPromised(t *testing.T) {
	u, want := packed(t)
	if _, delta, err := Unpack(u.Encode(), want); err != nil || len(delta) != 2 {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Update){
		"round": func(u *Update) { u.Round++ }, "unit": func(u *Update) { u.Unit++ },
		"codec":         func(u *Update) { u.Codec = codec.Float32 },
		"fewer tensors": func(u *Update) { u.Payloads = u.Payloads[:1] },
		"short payload": func(u *Update) { u.Payloads[0] = u.Payloads[0][1:] },
		"flipped bit":   func(u *Update) { u.Payloads[0] = bytes.Clone(u.Payloads[0]); u.Payloads[0][1500] ^= 1 },
	} {
		bad, _ := packed(t)
		change(bad)
		if _, _, err := Unpack(bad.Encode(), want); !errors.Is(err, codec.ErrPayload) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	u, want := packed(f)
	want.Root = canon.Digest{}
	f.Add(u.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, delta, err := Unpack(b, want); err == nil {
			for _, d := range delta {
				for _, v := range d.F32() {
					if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
						t.Fatal("accepted a number that is not finite")
					}
				}
			}
		}
	})
}

func TestOverhead(t *testing.T) {
	for _, sizes := range [][]int{nil, {0}, {1, 23, 24}, {255, 256, 65535, 65536}} {
		u, all := &Update{Codec: codec.Int8}, 0
		for _, n := range sizes {
			u.Payloads, all = append(u.Payloads, make([]byte, n)), all+n
		}
		if got, want := all+Overhead(u.Codec, sizes), len(u.Encode()); got != want && len(sizes) > 0 {
			t.Errorf("payloads of %d bytes: %d, encoded they have %d", sizes, got, want)
		}
	}
}
