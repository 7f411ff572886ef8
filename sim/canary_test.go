package sim

import (
	"maps"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/verifiers"
	"github.com/starling-network/starling/sim/check"
)

// Canaries: a checker must not let these networks pass.
func TestCheckersSeeWhatIsWrong(t *testing.T) {
	play := func(t *testing.T, c Config, checker check.Checker, spoil func(w *Network)) {
		w, err := New(c, checker)
		if err != nil {
			t.Fatal(err)
		}
		spoil(w)
		if _, err = w.Play(); err == nil {
			t.Error("nothing was found")
		}
		t.Log(err)
	}
	nothing := func(*Network) {}
	broken := small(t)
	broken.Acts = one(w1, adversary.FlipsBit{Step: 4, Tensor: 2, Bit: 3})
	t.Run("a machine that computes wrong is slashed",
		func(t *testing.T) { play(t, broken, check.HonestNotSlashed{}, nothing) })
	blind := small(t)
	blind.Verifiers, blind.Acts = 1, map[string]adversary.Attack{w1: adversary.Poisons{Factor: -1},
		"verifier-0": verifiers.Colludes{With: []string{keyOf(w1).Address()}}}
	t.Run("a lie without an audit is in the model",
		func(t *testing.T) { play(t, blind, &check.Lineage{Honest: true}, nothing) })
	// With a watcher, an account without a seat that verifies in its spare time, the same two lose.
	seen := blind
	order := seen.order()
	seen.Order, seen.Joins = &order, []Newcomer{{Name: "stranger", Role: crew.Verifier, At: 8 * time.Second}}
	t.Run("two who are one lose to a stranger that watches", func(t *testing.T) {
		onlyLong(t)
		w, err := New(seen, &check.Lineage{Honest: true}, check.CoinsConserved{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Play(); err != nil {
			t.Error(err)
		}
		s, err := w.State()
		if err != nil {
			t.Fatal(err)
		}
		liar, _ := s.Member(w.ID(w1))
		if stranger := w.ID("stranger"); liar.Why != reason.Verdict || !s.Guest(stranger) || s.Phase != progress.Done {
			t.Errorf("the run ends as %s, the liar as %+v, the stranger is a guest: %t", s.Phase, liar, s.Guest(stranger))
		}
	})
	// And so with two verifiers of the network, which look at nothing but what is drawn for them.
	asked := blind
	wanted := asked.order()
	asked.Order, asked.Joins, asked.Acts = &wanted, nil, maps.Clone(blind.Acts)
	for _, name := range []string{"first", "second"} {
		asked.Joins = append(asked.Joins, Newcomer{Name: name, Role: crew.Verifier, At: 8 * time.Second})
		asked.Acts[name] = verifiers.Idle{}
	}
	t.Run("two who are one lose to those whom the network draws", func(t *testing.T) {
		w, err := New(asked, check.CoinsConserved{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Play(); err != nil {
			t.Error(err)
		}
		s, err := w.State()
		if err != nil {
			t.Fatal(err)
		}
		if liar, _ := s.Member(w.ID(w1)); liar.Why != reason.Verdict || s.Phase != progress.Done || !s.Guest(w.ID("first")) &&
			!s.Guest(w.ID("second")) {
			t.Errorf("the run ends as %s, the liar as %+v", s.Phase, liar)
		}
	})
	t.Run("an unknown account has coins", func(t *testing.T) {
		play(t, small(t), check.CoinsConserved{}, func(w *Network) { w.minted -= Funds })
	})
}
