package node_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/estimate/capacity"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/protocol/registry"
)

// A machine has the memory that it touches, and does not touch more than the system has.
func TestTouch(t *testing.T) {
	m, err := capacity.Touch(t.Context(), 130)
	if err != nil || m.Short() || m.Touched != 130 || m.Rate <= 0 {
		t.Errorf("%+v, %v", m, err)
	}
	_, total, ok := memory.Available()
	if !ok {
		t.Skip("this system does not say what memory it has")
	}
	if m, err = capacity.Touch(t.Context(), total>>20+1); err != nil || !m.Short() || m.Touched != 0 {
		t.Errorf("more than there is: %+v, %v", m, err)
	}
}

// The file of a measurement is gone after it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	d := capacity.Write(dir, disk.Share{Percent: 50})
	if d.Error != "" || d.Write <= 0 || d.Read <= 0 || d.Share > d.Free {
		t.Errorf("%+v", d)
	}
	if d := capacity.Write(dir+"/none", disk.Share{Percent: 50}); d.Error == "" || d.Write > 0 {
		t.Errorf("a folder that does not exist: %+v", d)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The beacon draws peers that can be dialled, whatever their order.
func TestDraw(t *testing.T) {
	var all []registry.Participant
	for i := range 40 {
		all = append(all, registry.Participant{ID: fmt.Sprint("p", i), Addrs: []string{"/ip4/127.0.0.1/tcp/1"}})
	}
	all[3].Addrs, all[5].Jailed = nil, true
	ids := func(seed string) (ids []string) {
		for _, p := range capacity.DrawPeers(all, canon.Sum(seed)) {
			if ids = append(ids, p.ID); p.ID == "p3" || p.ID == "p5" {
				t.Errorf("%s is drawn", p.ID)
			}
		}
		return ids
	}
	one, other := fmt.Sprint(ids("a")), fmt.Sprint(ids("b"))
	all[0], all[39] = all[39], all[0]
	if again := fmt.Sprint(ids("a")); again != one || one == other || len(ids("a")) != capacity.DrawnPeers {
		t.Errorf("%s, %s, %s", one, again, other)
	}
}
