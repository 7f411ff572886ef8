package tracking

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/coin"
)

// Gauge is a number of a job under its name for Prometheus. A process that trains serves it, and an export of a run
// writes it: both under one name, so that one board shows both.
type Gauge struct {
	Name, Help string
	Of         func(latest api.Metric) float64 // NaN: not known
}

// Gauges are those that the metrics of a run tell.
var Gauges = []Gauge{
	{"starling_job_steps", "Inner steps in attested rounds of the job.",
		func(m api.Metric) float64 { return float64(m.Step) }},
	{"starling_job_rounds", "Attested rounds of the job.",
		func(m api.Metric) float64 { return float64(m.Round) }},
	{"starling_job_tokens", "Tokens trained in attested rounds of the job.",
		func(m api.Metric) float64 { return float64(m.Tokens) }},
	{"starling_job_loss", "Mean training loss of the latest round, in nats a token.",
		trained(func(m api.Metric) float64 { return m.Loss })},
	{"starling_job_eval_loss", "Latest loss on held-out data, in nats a token.",
		func(m api.Metric) float64 { return perhaps(m.EvalLoss) }},
	{"starling_job_accuracy", "Latest accuracy on held-out examples, of a job that measures it.",
		func(m api.Metric) float64 { return perhaps(m.Measurement("accuracy")) }},
	{"starling_job_margin", "Latest margin of preferred answers on held-out pairs, in nats.",
		func(m api.Metric) float64 { return perhaps(m.Measurement("margin")) }},
	{"starling_job_reward", "Latest mean reward, from 0 to 1, of the most likely answers to held-out prompts.",
		func(m api.Metric) float64 { return perhaps(m.Measurement("reward")) }},
	{"starling_job_learning_rate", "Learning rate at the end of the latest round.",
		trained(func(m api.Metric) float64 { return m.LearningRate })},
	{"starling_job_grad_norm", "Norm of the gradient before clipping, the mean over the inner steps of the latest round.",
		func(m api.Metric) float64 { return perhaps(m.GradNorm) }},
	{"starling_job_agreement", "Mean cosine between the updates of the latest round and the combined update.",
		func(m api.Metric) float64 { return perhaps(m.Agreement) }},
	{"starling_job_tokens_per_second", "Tokens trained a second in the latest round.",
		trained(func(m api.Metric) float64 { return m.TokensPerSecond })},
	{"starling_job_round_seconds", "Time of the latest round.",
		trained(func(m api.Metric) float64 { return m.Seconds })},
	{"starling_job_round_sent_bytes", "Bytes sent by all workers in the latest round.",
		trained(func(m api.Metric) float64 { return float64(m.BytesUp) })},
	{"starling_job_round_received_bytes", "Bytes received by all workers in the latest round.",
		trained(func(m api.Metric) float64 { return float64(m.BytesDown) })},
	{"starling_job_workers", "Active workers of the job.",
		func(m api.Metric) float64 { return float64(m.Workers) }},
	{"starling_job_paid_uzen", "Paid for the job so far, fee included, of an order in ZEN.",
		func(m api.Metric) float64 { return Uzen(api.CoinOf(m.Coin), m.PaidUzen) }},
	{"starling_job_paid_coins", "Paid for the job so far, fee included, in coins of its order.",
		func(m api.Metric) float64 { return api.CoinOf(m.Coin).Float(m.PaidUzen) }},
}

// Uzen is an amount of ZEN in uzen; NaN of another coin.
func Uzen(c coin.Coin, grains uint64) float64 {
	if !c.Own() {
		return math.NaN()
	}
	return float64(grains)
}

func perhaps(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// trained is a number that only a round has in which something was trained.
func trained(of func(api.Metric) float64) func(api.Metric) float64 {
	return func(m api.Metric) float64 {
		if m.Kind != "round" || m.Round == 0 {
			return math.NaN()
		}
		return of(m)
	}
}

// Latest is the record of a round behind those before it: what is not measured in every round stays as it was measured
// last.
func Latest(before, round api.Metric) api.Metric {
	if round.EvalLoss == nil {
		round.EvalLoss, round.Measured = before.EvalLoss, before.Measured
	}
	return round
}

// Prometheus writes the latest numbers of a run in the text format of Prometheus, version 0.0.4, with the job as label.
func Prometheus(w io.Writer, jobID string, metrics []api.Metric) error {
	var latest api.Metric
	known := false
	for _, m := range metrics {
		if m.Kind == "round" {
			latest, known = Latest(latest, m), true
		}
	}
	var b strings.Builder
	for _, g := range Gauges {
		x := g.Of(latest)
		if !known || math.IsNaN(x) {
			continue
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", g.Name, g.Help, g.Name)
		fmt.Fprintf(&b, "%s{job=\"%s\"} %s\n", g.Name, label.Replace(jobID), strconv.FormatFloat(x, 'g', -1, 64))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// label writes what a label may hold.
var label = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
