package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run"
)

// Validators are killed, lose the end of a file, and have the wrong time.
func TestValidators(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, whyNot() == nil, nil)
	var deaths []fault
	for _, file := range []string{"cs.wal", "application.db", "state.db", "blockstore.db"} {
		deaths = append(deaths, fault{"truncate_" + file, func(j *job) {
			v := n.validators[3]
			j.strike()
			v.kill()
			truncate(j.t, filepath.Join(n.dir, v.name, "data", file))
			v.start(0)
			j.caughtUp("the last write of its "+file+" was lost", v)
		}})
	}
	deaths = append(deaths, fault{"kill_a_validator", func(j *job) {
		v, w := n.validators[1], n.workers[1] // this worker follows the chain at this validator
		j.strike()
		v.kill()
		j.until("a round without it", func(s run.State) bool { return s.Round > j.hurt+1 })
		v.start(0)
		j.caughtUp("killed", v)
		j.back("its validator was killed", w)
	}})
	n.suffer("validators", 24, deaths...)
	n.suffer("clocks", 16, fault{"wrong_clocks", func(j *job) {
		for i, p := range []*process{n.workers[0], n.workers[2], n.validators[3]} {
			shift := []time.Duration{61 * time.Minute, -61 * time.Minute}[i%2]
			what := fmt.Sprintf("restarted with its clock wrong by %v", shift)
			j.strike()
			p.kill()
			if i == 2 { // with a slow clock it says so, and ends
				p.start(-shift)
				p.says(`CLOCK_WRONG`)
				p.end()
			}
			p.start(shift)
			if i < 2 {
				j.back(what, p)
			} else {
				j.caughtUp(what, p)
			}
		}
	}})
	n.replay(n.validators[3])
}

// A worker and a validator run out of disk.
func TestDisks(t *testing.T) {
	if why := whyNot(); why != nil {
		t.Skipf("no file systems of their own, and so no full ones: %v", why)
	}
	t.Parallel()
	sizes := map[string]int{"worker-2": 64 << 20, "validator-2": 256 << 20}
	n := newNetwork(t, true, sizes, "--reserve", "64MiB")
	defer n.replay(n.validators[2])
	n.suffer("disks", 26, fault{"full_disk_of_a_worker", func(j *job) {
		w := n.workers[2]
		j.strike()
		free := fill(j.t, filepath.Join(n.dir, w.name))
		j.until("two rounds", func(s run.State) bool { return s.Round > j.hurt+1 })
		free()
		j.back("its disk was full", w)
	}}, fault{"full_disk_of_a_validator", func(j *job) {
		v, w := n.validators[2], n.workers[2] // this worker follows the chain at this validator
		j.strike()
		free := fill(j.t, filepath.Join(n.dir, v.name))
		v.says("DISK_FULL")
		if said, err := exec.Command(program, "validator", "status", "--home", filepath.Join(n.dir, v.name), "-o",
			"json").CombinedOutput(); err == nil || !strings.Contains(string(said), "DISK_FULL") {
			j.t.Errorf("status while its disk is full: %v\n%s", err, said)
		}
		j.until("two rounds", func(s run.State) bool { return s.Round > j.hurt+1 })
		at := n.rpc[slices.Index(n.validators, v)]
		for _, ask := range []string{"network", "status", "doctor"} {
			if said, err := exec.Command(program, ask, "--network", at, "-o", "json").CombinedOutput(); err == nil ||
				!strings.Contains(string(said), "DISK_FULL") {
				j.t.Errorf("%s while the disk of %s is full: %v\n%s", ask, at, err, said)
			}
		}
		free()
		v.says("there is room on the disk again")
		j.caughtUp("its disk was full", v)
		j.back("its validator's disk was full", w)
	}})
}

// replay stops a validator for good, and has its blocks executed once more: they lead to the states that were agreed
// on.
func (n *network) replay(v *process) {
	if n.t.Failed() {
		return // a failed fault leaves the network in an unknown state
	}
	n.t.Helper()
	v.signal(syscall.SIGTERM)
	v.end()
	said, err := exec.Command(program, "validator", "replay", "--home", filepath.Join(n.dir, v.name)).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "lead to the states that were agreed on") {
		n.t.Errorf("the chain of %s is played back: %v\n%s", v.name, err, said)
	}
	n.t.Logf("%s", said)
}

// caughtUp waits until a validator has the block that the chain is at, and notes how many rounds after the fault that
// is. It must still have its vote: the network is to live through the next fault, too.
func (j *job) caughtUp(what string, v *process) {
	j.t.Helper()
	from := j.run(j.id).Round
	j.level(v)
	var said struct {
		Power int64 `json:"power"`
	}
	out, err := exec.Command(program, "validator", "status", "--home", filepath.Join(j.dir, v.name), "-o", "json").Output()
	if err != nil || json.Unmarshal(out, &said) != nil || said.Power == 0 {
		j.t.Errorf("%s has no vote: %v\n%s", v.name, err, out)
	}
	j.note("%s: %s in round %d, there again in round %d; %d rounds after the fault it has all blocks", v.name, what,
		j.hurt+1, from+1, j.run(j.id).Round-j.hurt)
	j.endured()
}

// truncate cuts off the last bytes that were written to a database or a log: the end of its newest file.
func truncate(t testing.TB, dir string) {
	t.Helper()
	var newest os.FileInfo
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && (filepath.Ext(e.Name()) == ".log" || e.Name() == "wal") && info.Size() > 0 &&
			(newest == nil || info.ModTime().After(newest.ModTime())) {
			newest = info
		}
	}
	if err != nil || newest == nil {
		t.Fatalf("no log in %s: %v", dir, err)
	}
	if err := os.Truncate(filepath.Join(dir, newest.Name()), max(0, newest.Size()-100)); err != nil {
		t.Fatal(err)
	}
}

// mount makes a folder a file system with the given number of bytes.
func mount(t testing.TB, dir string, bytes int) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o700),
		syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", bytes))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill leaves no byte free in the file system of a folder, until free is called.
func fill(t testing.TB, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(slices.Repeat([]byte{1}, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	_ = f.Close() // a full disk is the purpose: the error is expected
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
