package answer_test

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/dispute"
)

// config is a dispute about an execution of 3 operators.
func config() dispute.Config {
	return dispute.Config{Job: "accusation 1", Asserter: "starling1provider", Challenger: "starling1accuser",
		Segments: []canon.Digest{canon.Sum("begin"), canon.Sum("end")}, Steps: []uint32{1}, Operators: 3, Parameters: 1,
		MoveBlocks: answer.MoveBlocks, NoUpdate: true}
}

func TestAccusations(t *testing.T) {
	r := receipt()
	accuse := func(accuser, chain string, height int64) (answer.Accusation, error) {
		return answer.Accuse(1, r, 1, accuser, chain, 5, config(), height, 100)
	}
	a, err := accuse("starling1accuser", r.Chain, 110)
	if err != nil || !a.Open() || a.Convicted() || a.BondTo() != a.Accuser || a.Receipt != r.Digest() ||
		a.Game.Deadline != 110+answer.MoveBlocks || a.Game.Mover() != r.Provider {
		t.Fatalf("%+v, %v", a, err)
	}
	for name, err := range map[string]error{
		"another network": second(accuse("starling1accuser", "other", 110)),
		"itself":          second(accuse(r.Provider, r.Chain, 110)),
		"no account":      second(accuse("", r.Chain, 110)),
		"too late":        second(accuse("starling1accuser", r.Chain, 111)),
		"too early":       second(accuse("starling1accuser", r.Chain, 9)),
	} {
		if !errors.Is(err, answer.ErrAccusation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	silent := a
	silent.Game = a.Game.Tick(a.Game.Deadline + 1)
	if silent.Open() || !silent.Convicted() || silent.BondTo() != a.Accuser {
		t.Errorf("a silent provider: %+v", silent)
	}
	moot := a
	moot.Game = a.Game.Void(120, false)
	if moot.Open() || moot.Convicted() || moot.BondTo() != a.Accuser {
		t.Errorf("a moot accusation: %+v", moot)
	}
	shown := []canon.Digest{canon.Sum("a"), canon.Sum("b"), canon.Sum("c")}
	top := canon.Inner(1, shown)
	var apply error
	a.Game, apply = a.Game.Apply(111, r.Provider, dispute.Move{Tree: &dispute.Tree{Top: top, Children: shown}}, nil)
	if apply != nil {
		t.Fatal(apply)
	}
	a.Game = a.Game.Tick(a.Game.Deadline + 1)
	if a.Open() || a.Convicted() || a.BondTo() != r.Provider {
		t.Errorf("a silent accuser: %+v", a)
	}
}

func second(_ answer.Accusation, err error) error { return err }
