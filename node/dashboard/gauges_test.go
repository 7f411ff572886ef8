package dashboard

import (
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/tracking"
)

// The metrics that a training process serves for Prometheus have the names and values of an export of its run.
func TestLiveMetricsAreTheExported(t *testing.T) {
	eval, norm, agreement := 3.25, 0.75, 0.5
	rounds := []api.Metric{
		{Kind: "round", EvalLoss: &eval, Workers: 3,
			Measured: map[string]float64{"accuracy": 0.75, "margin": 1.5, "reward": 0.25}},
		{Kind: "round", Round: 1, Step: 20, Loss: 4.875, LearningRate: 0.002, Tokens: 192, TokensPerSecond: 64, BytesUp: 10,
			BytesDown: 20, Workers: 3, Seconds: 3, PaidUzen: 2500000, GradNorm: &norm, Agreement: &agreement},
	}
	lines := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "starling_job_") {
				all = append(all, strings.Replace(strings.TrimSpace(line), `{job="a"}`, "", 1))
			}
		}
		slices.Sort(all)
		return all
	}
	scrape := func(w *instrument.Instruments) []string {
		answer := httptest.NewRecorder()
		w.Metrics.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		return slices.DeleteFunc(lines(answer.Body.String()), func(line string) bool {
			return strings.Contains(line, "planned_steps") || strings.Contains(line, "job_budget") // of a job that is not over
		})
	}
	w := instrument.New("test", "train")
	show, p := NewProgressGauges(w.Metrics).Follow(nil), consumer.Progress{Loss: math.NaN(), EvalLoss: math.NaN()}
	for _, m := range rounds {
		p.Latest = tracking.Latest(p.Latest, m)
		p.Step, p.Round, p.Workers, p.PaidUzen = int(m.Step), int(m.Round), m.Workers, m.PaidUzen
		show(p)
	}
	var b strings.Builder
	if err := tracking.Prometheus(&b, "a", rounds); err != nil {
		t.Fatal(err)
	}
	if live, exported := scrape(w), lines(b.String()); !slices.Equal(live, exported) ||
		len(live) != 3*len(tracking.Gauges) {
		t.Errorf("live\n%s\nexported\n%s", strings.Join(live, "\n"), strings.Join(exported, "\n"))
	}
}
