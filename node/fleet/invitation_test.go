package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

func example() Invitation {
	return NewInvitation("chain", wallet.KeyFromSeed([32]byte{1}).Address(), "http://10.0.0.7:26601", 99)
}

// An invitation is one line, which a file may hold, and is read as it was written.
func TestInvitations(t *testing.T) {
	i := example()
	text := i.String()
	if strings.ContainsAny(text, " \n\t'\"$") {
		t.Errorf("%q cannot be pasted", text)
	}
	file := filepath.Join(t.TempDir(), "machine")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{text, file} {
		if got, err := Read(from); err != nil || got != i {
			t.Errorf("%s: %+v, %v", from, got, err)
		}
	}
	if i.Key().Address() == example().Key().Address() {
		t.Error("two invitations have one key")
	}
	bare := i
	bare.Network = ""
	foreign := i
	foreign.Owner = "cosmos1"
	for name, wrong := range map[string]string{"nothing": "", "cut": text[:len(text)-3],
		"changed": text[:40] + "A" + text[41:],
		"more":    text + "AAAA", "without a network": bare.String(), "of another chain": foreign.String(),
		"large": prefix + strings.Repeat("A", MaxText), "a file that is not there": filepath.Join(t.TempDir(), "none")} {
		if got, err := Read(wrong); err == nil && got == i || err != nil && !errors.Is(err, ErrInvitation) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example().String())
	f.Add(prefix)
	f.Fuzz(func(t *testing.T, text string) {
		i, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(i.String()); err != nil || again != i {
			t.Fatalf("%+v is read as %+v, %v", i, again, err)
		}
	})
}

func TestStates(t *testing.T) {
	machine := func(change func(*registry.Participant)) registry.Participant {
		p := registry.Participant{ID: "m", Stake: 5, Roles: []crew.Role{crew.Worker}, Machine: registry.Machine{Owner: "o"}}
		if change != nil {
			change(&p)
		}
		return p
	}
	for _, c := range []struct {
		change func(*registry.Participant)
		part   bool
		want   State
		over   bool
	}{
		{func(p *registry.Participant) { p.Machine.Until = 10 }, false, Invited, false},
		{func(p *registry.Participant) { p.Machine.Until = 9 }, false, Expired, false},
		{nil, false, Waiting, false},
		{nil, true, Working, false},
		{func(p *registry.Participant) { p.Roles = nil }, false, Enrolled, false},
		{func(p *registry.Participant) { p.Jailed = true }, true, Convicted, false},
		{func(p *registry.Participant) { p.Machine.Drains = true }, true, Draining, true},
		{func(p *registry.Participant) { p.Machine.Drains = true }, false, Drained, true},
		{func(p *registry.Participant) { p.Machine.Revoked = 5 }, true, Answering, true},
		{func(p *registry.Participant) { p.Machine.Revoked = 5 }, false, RevokedNow, true},
		{func(p *registry.Participant) { p.Machine.Revoked, p.Stake = 5, 0 }, false, Gone, true},
	} {
		p := machine(c.change)
		if got := stateOf(p, c.part, 10); got != c.want {
			t.Errorf("%+v is %s, want %s", p, got, c.want)
		}
		if text, over := Standing(p); over != c.over || text == "" {
			t.Errorf("%+v: %q, %v", p, text, over)
		}
	}
	if text, over := Standing(registry.Participant{ID: "m"}); text != "" || over {
		t.Errorf("an account of its own: %q", text)
	}
}
