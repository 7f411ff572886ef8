package memory

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/tensor"
)

// filled is a tensor of n bytes.
func filled(n int, x byte) *tensor.Tensor {
	t := tensor.New(tensor.Make(tensor.Uint8, n))
	for i := range t.Bytes() {
		t.Bytes()[i] = x
	}
	return t
}

func TestRoom(t *testing.T) {
	dir := t.TempDir()
	taken, freed := int64(0), make(chan bool, 1)
	a := Aside{Dir: dir, Reserve: func(bytes int64) (func(), error) {
		taken += bytes
		return func() { freed <- true }, nil
	}}
	if a.Room(LeastRoom-1) != nil || taken != 0 {
		t.Errorf("room for little: %d bytes", taken)
	}
	lay := a.Room(LeastRoom)
	if lay == nil || taken != LeastRoom {
		t.Fatalf("no room, or for %d bytes", taken)
	}
	odd, large := filled(3001, 3), filled(LeastRoom-3001, 5)
	first, second := lay(odd), lay(large)
	if !first.Lent() || !second.Lent() || first.Root() != odd.Root() || second.Root() != large.Root() {
		t.Fatal("tensors are others, or where they were")
	}
	if !tensor.Aligned(second.Bytes()) {
		t.Error("a tensor begins at an odd place")
	}
	second.Rest()
	first.Rest()
	if !bytes.Equal(second.Bytes(), large.Bytes()) || !bytes.Equal(first.Bytes(), odd.Bytes()) {
		t.Error("tensors that rested are others")
	}
	if lay(large) != large {
		t.Error("more is laid than there is room for")
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("files with names: %v, %v", names, err)
	}
	runtime.KeepAlive(second)
	lay, first, second = nil, nil, nil
	for waited := time.After(time.Minute); ; {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-waited:
			t.Fatal("the room was never given back")
		default:
		}
	}
}

func TestNoRoom(t *testing.T) {
	freed := false
	with := Aside{Dir: t.TempDir() + "/none", Reserve: func(int64) (func(), error) {
		return func() { freed = true }, nil
	}}
	if with.Room(LeastRoom) != nil || !freed {
		t.Error("room in a folder that is not there")
	}
	full := Aside{Dir: t.TempDir(), Reserve: func(int64) (func(), error) { return nil, errors.New("full") }}
	if full.Room(LeastRoom) != nil {
		t.Error("room on a full disk")
	}
}
