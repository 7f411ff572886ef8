package attack

import "testing"

// An adversary with a quarter of all stake that is honest earns; node/benchmark/attack plays what it gains by other
// plans.
func TestQuarterOfAllStake(t *testing.T) {
	o := must(Quarter{Job: must(QuarterJob())(t), Plan: Plans[0]}.Play())(t)
	t.Logf("%+v", o)
	if o.Attested+o.Final > 0 || o.Gain < 0 || len(o.Convicted) > 0 {
		t.Errorf("%+v", o)
	}
}

// With seed 3 the beacon draws the adversary for three of the six seats, so that neither half of the votes is a
// majority.
func TestAQuarterWithHalfOfTheSeats(t *testing.T) {
	if !*long {
		t.Skip("played with -long")
	}
	forges := Plans[len(Plans)-1]
	o := must(Quarter{Seed: 3, Job: must(QuarterJob())(t), Plan: forges}.Play())(t)
	if o.Final > 0 || o.Gain >= 0 && o.Attested > 0 {
		t.Errorf("%+v", o)
	}
	t.Logf("%+v", o)
}

// The canary: where the seats of a run decide who audits, who has them fakes what it likes and is paid. Where audits
// are drawn from the whole network the same adversary loses.
func TestWhoChoosesItsVerifierWins(t *testing.T) {
	if !*long {
		t.Skip("played with -long")
	}
	j := must(QuarterJob())(t)
	old := must(Quarter{Seed: SeatedWins, Job: j, Plan: Plans[1], Seated: true}.Play())(t)
	if old.Faked <= 0 || old.Gain <= 0 || old.Wrong == 0 {
		t.Errorf("with verifiers of its own: %+v", old)
	}
	now := must(Quarter{Seed: SeatedWins, Job: j, Plan: Plans[1]}.Play())(t)
	if now.Faked >= 0 || now.Gain >= 0 || now.Wrong > 0 || len(now.Convicted) == 0 {
		t.Errorf("with verifiers of the network: %+v", now)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
