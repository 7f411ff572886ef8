package scale

import (
	"errors"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/sim/link"
)

func crowd(workers int, rounds uint32) Model {
	return Model{
		Seed: 1, Workers: workers, Run: 16, Verifiers: 1, Rounds: rounds, AuditPPM: 50_000, Block: 5 * time.Second,
		Unit: 10 * time.Second,
		Link: link.Link{Latency: 50 * time.Millisecond, Up: 12.5e6, Down: 12.5e6}, Update: 100_000,
	}
}

// The same seed gives the same lineages at the same heights; every run ends, with audits, and is worked at
// most of the time.
func TestCrowd(t *testing.T) {
	c := crowd(72, 6)
	a, err := c.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a.Runs != 5 || a.Members != 77 || a.Audits == 0 || a.Messages < 2*72*6 || a.Utilisation < 0.3 || a.Utilisation > 1 {
		t.Errorf("%+v", a)
	}
	b, err := c.Play(t.Context())
	if err != nil || a != b {
		t.Errorf("the same seed: %+v, then %+v, %v", a, b, err)
	}
	c.Seed = 2
	if b, err = c.Play(t.Context()); err != nil || a == b {
		t.Errorf("another seed: %+v, %v", b, err)
	}
	for _, c := range []Model{{Workers: 1}, {Workers: 2000, Run: 2000}} {
		if _, err := c.Play(t.Context()); !errors.Is(err, ErrUnplayable) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Verifiers are asked to execute by default at most 12 % of the units that workers execute. Second looks, which a crowd
// does not play, are added as their part of all audits.
func TestVerificationCostsLittle(t *testing.T) {
	of := spec.Default().Strategy
	c := crowd(1000, 10)
	c.Run, c.Verifiers, c.AuditPPM = of.Workers.Target, of.Verification.Verifiers, of.Verification.AuditPPM()
	p, err := c.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if cost := float64(p.Looked) / float64(p.Trained) * (1 + audit.SecondPPM/1e6); p.Trained < 10_000 || cost < 0.10 ||
		cost > 0.12 {
		t.Errorf("%.4f of %d units: %+v", cost, p.Trained, p)
	}
}

// BenchmarkCrowd reports the time for a worker and a round.
func BenchmarkCrowd(b *testing.B) {
	const workers, rounds = 1024, 10
	for range b.N {
		r, err := crowd(workers, rounds).Play(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%+v", r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/workers/rounds/1000, "us/worker-round")
}
