package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
)

// Each thing that is not as it should be is one check that fails.
func TestNetworkHealth(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, change := range map[string]func(n *api.Network, b *Books){
		"":             func(*api.Network, *Books) {},
		"network":      func(n *api.Network, _ *Books) { n.Time = now.Add(-2 * time.Minute) },
		"votes":        func(n *api.Network, _ *Books) { n.Validators[0].Signed = false },
		"peers":        func(n *api.Network, _ *Books) { n.Peers = 0 },
		"clock":        func(n *api.Network, _ *Books) { n.Time = now.Add(time.Minute) },
		"participants": func(n *api.Network, _ *Books) { n.Participants[0].Jailed = true },
		"books":        func(_ *api.Network, b *Books) { b.Wrong = []string{"market"} },
	} {
		n := api.Network{Height: 9, Time: now.Add(-time.Second), Peers: 1, Participants: []api.Participant{{Offers: true}},
			Validators: []api.Validator{{Power: 1, Signed: true}, {Power: 1, Signed: true}, {Power: 1, Signed: true}}}
		b := &Books{Books: make([]client.Book, 3)}
		change(&n, b)
		h := networkHealth(n, b, now)
		var failed []string
		for _, x := range h.Checks {
			if !x.OK {
				failed = append(failed, x.Name)
			}
		}
		if strings.Join(failed, " ") != name || (h.Status == "ok") != (name == "") {
			t.Errorf("%q: %s, %v fail", name, h.Status, failed)
		}
	}
}

func TestPricesOfOffers(t *testing.T) {
	lot := func(role run.Role, price uint64, slots uint32, rate uint64) market.Lot {
		l := market.Lot{Offer: market.Offer{Role: role, Price: price, Slots: slots}}
		l.Rate = rate
		return l
	}
	got := pricesOf([]market.Lot{lot(run.Worker, 30, 1, 0), lot(run.Worker, 10, 2, 1e12), lot(run.Worker, 20, 1, 0), lot(run.Verifier, 7, 1, 0)})
	want := []Prices{{Role: "worker", Offers: 3, Slots: 4, Lowest: 10, Median: 20, Highest: 30, Hourly: market.Hourly(10, 1e12)}, {Role: "verifier", Offers: 1, Slots: 1, Lowest: 7, Median: 7, Highest: 7}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := pricesOf(nil); got == nil || len(got) > 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

// Of the end of a log whole lines are read, and what is added while it is followed.
func TestReadLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileValidatorLog)
	if err := os.WriteFile(path, []byte("first\nsecond\nthird\nfo"), 0o644); err != nil {
		t.Fatal(err)
	}
	var lines []string
	add := func(more []string) error { lines = append(lines, more...); return nil }
	for bytes, want := range map[int64]string{1000: "first second third", 12: "third", 1: ""} {
		lines = nil
		if err := ReadLog(t.Context(), dir, bytes, false, add); err != nil || strings.Join(lines, " ") != want {
			t.Errorf("%d bytes: %q, %v", bytes, lines, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines = nil
	err := ReadLog(ctx, dir, 9, true, func(more []string) error {
		if lines = append(lines, more...); lines[len(lines)-1] == "fourth" {
			cancel()
			return nil
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("urth\n")
			_ = f.Close()
		}
		return err
	})
	if err != nil || strings.Join(lines, " ") != "third fourth" {
		t.Errorf("followed: %q, %v", lines, err)
	}
}
