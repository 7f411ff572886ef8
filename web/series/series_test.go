package series

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/sourcetest"
	"github.com/starling-network/starling/web/totals"
)

func TestSeriesLookLikeTheRun(t *testing.T) {
	h := sourcetest.Run(10_000) // 100,000 steps
	m := Of(h, nil, 1000, 0, math.Inf(1))
	names := map[string]api.Series{}
	for _, x := range m.Series {
		if len(x.Step) != len(x.Value) || len(x.Step) > 1000 || !slices.IsSorted(x.Step) {
			t.Errorf("%s: %d steps, %d values", x.Name, len(x.Step), len(x.Value))
		}
		names[x.Name] = x
	}
	loss := names["loss"]
	if loss.Count != 100_000 || loss.Step[0] != 1 || loss.Step[len(loss.Step)-1] != 100_000 || loss.Value[0] != 5 {
		t.Errorf("%+v", loss)
	}
	if e := names["eval_loss"]; e.Count != 10_001 || e.Value[0] != 5.5 {
		t.Errorf("%d", e.Count)
	}
	if g, a := names["grad_norm"], names["agreement"]; g.Count != 100_000 || g.Of != "step" || a.Count != 10_000 ||
		a.Value[0] != 0.9 {
		t.Errorf("%d gradient norms of every %s, %d agreements", g.Count, g.Of, a.Count)
	}
	if r := names["rejected"]; r.Value[0] != 1 {
		t.Errorf("%v", r.Value[:3])
	}
	if n := len(m.Axis.Step); n < 900 || n > 1001 || m.Axis.Seconds[n-1] != 20_000 || m.Axis.Tokens[n-1] != 10_000_000 {
		t.Errorf("axis of %d, %v seconds", n, m.Axis.Seconds[n-1])
	}
	part := Of(h, []string{"loss"}, 1000, 500, 520)
	if len(part.Series) != 1 || part.Series[0].Count != 21 {
		t.Errorf("%+v", part)
	}
}

// Each model of a swarm has a series of its own.
func TestRewardsOfNodes(t *testing.T) {
	h := &source.History{}
	for round := range uint32(3) {
		h.Metrics = append(h.Metrics, api.Metric{Kind: "round", Round: round, Step: 5 * round,
			Measured: map[string]float64{"reward": 0.5, "node_0_reward": 0.25, "node_15_reward": 0.5}})
	}
	got := map[string]float64{}
	for _, s := range Of(h, nil, 10, 0, math.Inf(1)).Series {
		if strings.HasPrefix(s.Name, "node_") && len(s.Value) == 3 {
			got[s.Label] = s.Value[2]
		}
	}
	if want := map[string]float64{"Reward of node 0": 0.25, "Reward of node 15": 0.5}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A spike is what a person looks for: thinning keeps it, and never leaves the range of the values.
func TestThinKeepsSpikes(t *testing.T) {
	for _, n := range []int{3, 10, 48, 1000} {
		var x, y []float64
		for i := range 54_321 {
			x, y = append(x, float64(i)), append(y, math.Sin(float64(i)/900))
		}
		y[40_000] = 50
		tx, ty := thin(x, y, n)
		if len(tx) != n || tx[0] != 0 || tx[n-1] != 54_320 || !slices.IsSorted(tx) {
			t.Fatalf("%d points of %d, from %v to %v", len(tx), n, tx[0], tx[len(tx)-1])
		}
		if n > 3 && !slices.Contains(ty, 50) {
			t.Errorf("%d points lose the spike", n)
		}
	}
	if tx, _ := thin([]float64{1, 2}, []float64{1, 2}, 1000); len(tx) != 2 {
		t.Error("two points were thinned")
	}
}

// Audits add up, whatever they ended with: those of a run, of its members, and of its rounds.
func TestAuditsAddUp(t *testing.T) {
	h := sourcetest.Run(2)
	for i, reason := range []string{reward.Verified, reward.TooSmall, reward.BudgetExhausted, reward.FaultFound,
		reward.NothingShown, reward.FoundOutside, reward.AuditMoot, reward.AuditMoot, reward.AuditMoot, reward.RunHalted,
		reward.AuditMissed, reward.VerifierLeft, reward.FalseChallenge, reward.SealUnopened, reward.PlantPassed,
		"of_tomorrow"} {
		h.Receipts = append(h.Receipts, api.Receipt{Seq: uint64(2000 + i), Round: 2, Who: "vic", Role: "verifier",
			Kind: "audit", Reason: reason})
	}
	var all api.AuditCounts
	for _, m := range totals.Members(h) {
		totals.AddAudits(&all, m.Audits)
	}
	if want := (api.AuditCounts{Drawn: 18, Passed: 5, Failed: 3, Moot: 5, Missed: 5}); all != want ||
		all.Drawn != all.Passed+all.Failed+all.Moot+all.Missed {
		t.Errorf("%+v, want %+v", all, want)
	}
	if want := "18 drawn: 5 the same bits, 3 a fault found, 5 moot, 5 not answered"; all.String() != want {
		t.Errorf("%v", all)
	}
	sum := 0.0
	for _, s := range Of(h, []string{"audits_passed", "audits_failed", "audits_moot", "audits_missed"}, 10, 0,
		1e9).Series {
		sum += s.Value[1]
	}
	if sum != 17 {
		t.Errorf("%v audits in round 2", sum)
	}
}

// The cost of rounds is that of their receipts, and ends with the cost of the run; where a run has no receipts, it is
// what its metrics say.
func TestCostIsWhatIsCharged(t *testing.T) {
	h := sourcetest.Run(3)
	for i := range h.Receipts {
		if h.Receipts[i].Kind == "audit" {
			h.Receipts[i].Fee = 1
		}
	}
	// from her stake
	h.Receipts = append(h.Receipts, api.Receipt{Round: 2, Who: "bob", Kind: "work", Amount: 500, Payer: "liz"})
	paid, fee := totals.Spent(h.Receipts)
	if paid != 21 || fee != 3 {
		t.Errorf("paid %d and %d", paid, fee)
	}
	m := Of(h, []string{"cost"}, 10, 0, 1e9)
	if want := []float64{8e-6, 16e-6, 24e-6}; len(m.Series) != 1 || !slices.Equal(m.Series[0].Value, want) ||
		!slices.Equal(m.Axis.Uzen, []float64{0, 8, 16, 24}) {
		t.Errorf("%+v", m)
	}
	h.Receipts = nil
	if m = Of(h, []string{"cost"}, 10, 0, 1e9); len(m.Series) != 1 || m.Series[0].Value[2] != 15e-6 ||
		m.Axis.Uzen[3] != 15 {
		t.Errorf("%+v", m)
	}
}

// The money of a run in another coin is in this coin.
func TestMoneyIsInTheCoinOfTheJob(t *testing.T) {
	h := sourcetest.Run(3)
	h.Job.Coin = &api.Coin{Denom: "ibc/A", Symbol: "dai", Decimals: 18}
	m := Of(h, []string{"cost", "earned"}, 10, 0, 1e9)
	if len(m.Series) != 2 || m.Coin != h.Job.Coin || m.Series[0].Unit != "DAI" || m.Series[1].Unit != "DAI" ||
		m.Series[0].Value[2] != m.Axis.Uzen[3]/1e9 || m.Series[1].Value[0] != 7e-9 {
		t.Errorf("%+v", m)
	}
}

// A loss is in nats a token, but for what is learnt from rewards and for the noise of images.
func TestUnitOfLosses(t *testing.T) {
	for measured, want := range map[string]string{"accuracy": "nats a token", "reward": "", "mse": ""} {
		h := sourcetest.Run(3)
		for i := range h.Metrics {
			h.Metrics[i].Measured = map[string]float64{measured: 0.5}
		}
		for _, s := range Of(h, []string{"loss", "eval_loss"}, 10, 0, math.Inf(1)).Series {
			if s.Unit != want {
				t.Errorf("%s of a run that measures %s is in %q", s.Name, measured, s.Unit)
			}
		}
	}
}
