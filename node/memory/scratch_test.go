package memory

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/tensor"
)

func TestScratch(t *testing.T) {
	if !Maps {
		t.Skip("files cannot be mapped here")
	}
	taken, freed := int64(0), make(chan bool, 1)
	a := Aside{Dir: t.TempDir(), Reserve: func(bytes int64) (func(), error) {
		taken += bytes
		return func() { freed <- true }, nil
	}}
	if a.Scratch(LeastRoom-1) != nil || taken != 0 {
		t.Errorf("room for little: %d bytes", taken)
	}
	s := a.Scratch(LeastRoom)
	if s == nil || taken != LeastRoom {
		t.Fatalf("no room, or for %d bytes", taken)
	}
	all := []*tensor.Tensor{s.New(tensor.Make(tensor.Uint8, 3001)), s.New(tensor.Make(tensor.Uint8, LeastRoom-8192+slack)),
		s.New(tensor.Make(tensor.Uint8, 8192))} // the last is one too many
	for i, x := range all {
		if x.Lent() != (i < 2) || slices.Max(x.Bytes()) != 0 {
			t.Fatalf("tensor %d: lent %v, and not zeros", i, x.Lent())
		}
		for k := range x.Bytes() {
			x.Bytes()[k] = byte(k%251 + i)
		}
	}
	s.Rest()
	for i, x := range all {
		for k, b := range x.Bytes() {
			if b != byte(k%251+i) {
				t.Fatalf("byte %d of tensor %d is %d after it has rested", k, i, b)
			}
		}
	}
	runtime.KeepAlive(all)
	s, all = nil, nil
	for range 100 {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the room is never given back")
}

func TestNoScratch(t *testing.T) {
	full := Aside{Dir: t.TempDir(), Reserve: func(int64) (func(), error) { return nil, errors.New("full") }}
	if full.Scratch(LeastRoom) != nil || (Aside{Dir: "/nowhere/at/all"}).Scratch(LeastRoom) != nil {
		t.Error("there is room where there is none")
	}
}
