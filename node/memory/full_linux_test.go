package memory

import (
	"os"
	"syscall"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

// A disk that fills while a checkpoint is laid ends nothing: the tensors that it has no room for stay in memory, and no
// page of them is missing.
func TestDiskFillsUnderACheckpoint(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	a := Aside{Dir: dir}
	lay := a.Room(LeastRoom)
	if lay == nil {
		t.Fatal("no room, before anything was written")
	}
	var lent []*tensor.Tensor
	for i := range byte(8) {
		x := filled(1<<20, i)
		laid := lay(x)
		if laid.Lent() {
			lent = append(lent, laid)
		} else if laid != x {
			t.Error("a tensor that was not laid is another")
		}
		laid.Rest()
		if laid.Root() != x.Root() {
			t.Errorf("tensor %d is another", i)
		}
	}
	if len(lent) == 0 || len(lent) > 4 {
		t.Errorf("%d MiB of 8 lie on a disk of 4", len(lent))
	}
	if a.Scratch(LeastRoom) != nil {
		t.Error("a full disk has scratch memory")
	}
	if a.Keep([][]byte{make([]byte, LeastAside)}) != nil {
		t.Error("a full disk keeps bytes")
	}
}
