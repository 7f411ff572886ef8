package codec

import (
	"bytes"
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

func packed(t testing.TB) (*Update, Expect) {
	delta := []*tensor.Tensor{normal(1, 1000), normal(2, 10)}
	u, err := Pack(Int8, 3, 1, delta)
	if err != nil {
		t.Fatal(err)
	}
	return u, Expect{Round: 3, Unit: 1, Parcel: Parcel{Name: Int8},
		Shapes: []tensor.Shape{delta[0].Shape, delta[1].Shape}, Root: u.Root()}
}

func TestUnpackRefusesWhatWasNotPromised(t *testing.T) {
	u, want := packed(t)
	if _, delta, err := Unpack(u.Encode(), want); err != nil || len(delta) != 2 {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Update){
		"round": func(u *Update) { u.Round++ }, "unit": func(u *Update) { u.Unit++ },
		"codec":         func(u *Update) { u.Codec = Float32 },
		"fewer tensors": func(u *Update) { u.Payloads = u.Payloads[:1] },
		"short payload": func(u *Update) { u.Payloads[0] = u.Payloads[0][1:] },
		"flipped bit":   func(u *Update) { u.Payloads[0] = bytes.Clone(u.Payloads[0]); u.Payloads[0][1500] ^= 1 },
	} {
		bad, _ := packed(t)
		change(bad)
		if _, _, err := Unpack(bad.Encode(), want); !errors.Is(err, ErrPayload) {
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
				if finite(d.F32()) != nil {
					t.Fatal("accepted a number that is not finite")
				}
			}
		}
	})
}
